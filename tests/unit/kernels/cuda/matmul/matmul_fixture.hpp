/// Weights, rows and a step for the matmul kernels, run thread by thread on the CPU.
///
/// All arrays are surrounded by poison: bytes that are NaN as a half and as a float. A forbidden
/// read shows in the result.
#pragma once

#include <span>

#include "kernels/cuda/plan/matmul_plan.hpp"
#include "tests/support/random_blocks.hpp"

namespace leasehold::testing {

/// The types that tensor cores multiply as halves: all but F32.
inline constexpr auto kHalfTypes = std::span(kEveryType).subspan<1>();
/// The types with row groups, which are multiplied as int8.
inline constexpr auto kInt8Types = std::span(kEveryType).subspan<3>();

/// Bytes at an address that is a multiple of 128. Poison precedes them and follows them up to the
/// next such multiple; memory beyond that faults. Under AddressSanitizer memory beyond the next
/// multiple of 16 faults too.
///
/// Lifetime: neither copied nor moved.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size_bytes);
  ~DeviceBytes();
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::span<std::byte> span() { return {data_, size_bytes_}; }
  /// Whether the poison is unchanged.
  bool is_intact() const;

 private:
  /// Poisons the surroundings for AddressSanitizer.
  void guard() const;
  void unguard() const;

  std::size_t size_bytes_;
  std::size_t usable_bytes_;  ///< Whole pages; a guard page follows.
  std::byte* pages_;
  std::byte* data_;
};

/// n elements of T between poison; poison themselves until written.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t n) : n_(n), bytes_(n * sizeof(T)) {}
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    std::ranges::copy(values, data());
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }
  std::span<T> span() { return {data(), n_}; }
  std::vector<T> values() const { return {data(), data() + n_}; }
  bool is_intact() const { return bytes_.is_intact(); }

 private:
  std::size_t n_;
  DeviceBytes bytes_;
};

/// A matrix of random blocks.
struct DeviceMatrix {
  DeviceMatrix(SeededRandom& random, TensorType type, std::uint32_t n_out, std::uint32_t n_in);
  std::vector<float> row(std::uint32_t output) const;

  TensorType type;
  std::uint32_t n_out;
  std::uint32_t n_in;
  DeviceBytes bytes;
};

/// The bytes of matrices of n_out rows in row groups. Precondition: each matrix is whole groups, or
/// there is one.
std::vector<std::byte> groups_of(const DeviceMatrix& matrix);

/// A width near `width` that the type supports.
std::uint32_t width_of(TensorType type, std::uint32_t width);

inline constexpr float kNormEpsilon = 1e-5F;
inline constexpr float kNormScale = 1.5F;
inline constexpr float kNormOutScale = 0.7F;
inline constexpr std::uint32_t kEpochOfMirror = 7;

/// Options of a test run of a matmul.
struct RunOptions {
  cuda::DeviceProperties card = {.n_sms = 1, .max_shared_bytes = 227 * 1024, .has_wgmma = false};
  bool prepare_first = false;  ///< Stores tiles of all rows first, as an earlier kernel would.
  std::uint32_t spare = 0;     ///< The launch is planned for this many results more than there are.
  /// An early launch begins before the rows of x, and the number of them, are there.
  bool has_predecessor = false;
  bool is_stopped = false;  ///< Stops the engine before the first kernel.
  /// With a predecessor: an early launch sees the stop, or its end, only after its wait.
  bool stops_late = false;
  bool goes_on_late = false;
  /// Where the launch reports the mirror's epoch, or null. Before its wait the mirror has another.
  std::uint64_t* tenant_seen = nullptr;
  /// Not 0: each kernel first runs until this many of its blocks have run and the engine stops.
  /// Then the counters are cleared, as the backend does, and it runs again.
  std::uint64_t stopped_after_blocks = 0;
};

/// A matmul with every optional argument.
struct MatmulCall {
  const DeviceMatrix* weight = nullptr;
  bool is_grouped = false;            ///< The kernels get the matrix in row groups.
  bool is_exact = false;              ///< The kernels multiply rows as floats.
  std::vector<float> x;               ///< [n_rows, n_in]
  std::vector<std::uint32_t> select;  ///< Empty: all rows.
  std::vector<float> bias;            ///< Empty: none.
  /// Not empty: the launch computes the centred norm of x with this weight. Then the rows of x are
  /// these.
  std::vector<float> norm_weight;
  std::vector<float> before;          ///< The product is added to this; empty: out is overwritten.
  std::vector<std::uint32_t> chosen;  ///< The expert of each item; empty: no experts.
  std::uint32_t n_experts = 1;
  std::uint32_t items_per_x = 1;

  std::uint32_t n_rows() const;
  std::uint32_t n_results() const;
  std::uint32_t n_out() const { return weight->n_out / n_experts; }
};

/// A call with random rows and, each with even chance, a bias, a selection and previous values.
MatmulCall random_call(SeededRandom& random, const DeviceMatrix& weight, std::uint32_t n_rows);

/// Returns [n_results, n_out]. Fails the test if a kernel faults or writes outside the results.
std::vector<float> run_matmul(const MatmulCall& call, const RunOptions& options = {});

/// Runs the calls in one launch; the first one's x and select are those of all. Returns the result
/// of each.
std::vector<std::vector<float>> run_joined(std::span<const MatmulCall> calls,
                                           const RunOptions& options = {});

/// The kernels that the call runs, in order.
std::vector<std::string> kernels_of(const MatmulCall& call, const RunOptions& options = {});

}  // namespace leasehold::testing
