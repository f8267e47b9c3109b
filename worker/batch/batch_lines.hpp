/// The lines of a batch: requests in the input file, and results in the files that the batch
/// writes. The forms are those of OpenAI's Batch API: one JSON object on each line. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "common/result.hpp"
#include "worker/batch/batch_record.hpp"

namespace leasehold::batch {

inline constexpr std::uint32_t kMaxLines = 50'000;
/// The limit for the body of one HTTP request.
inline constexpr std::size_t kMaxLineBytes = 512 << 10;
inline constexpr std::size_t kMaxCustomIdBytes = 256;
inline constexpr std::size_t kMaxLineErrors = 100;  ///< A check stops after this many bad lines.

/// A request of a batch.
struct BatchLine {
  std::string custom_id;
  std::string url;
  std::string body;   ///< The JSON of the request.
  std::string model;  ///< Empty: the body names none.
};

/// Parses one line. Errors: BadRequest, which names the field.
Result<BatchLine> parse_line(std::string_view line);

/// Where a checked line is in its file.
struct LineSpan {
  std::string custom_id;
  std::uint64_t offset = 0;
  std::uint32_t size_bytes = 0;  ///< Without its line end.
};

struct CheckedLines {
  std::vector<LineSpan> lines;
  std::vector<LineError> errors;  ///< Empty: every line is a request.
};

/// Checks an input file that is given in pieces.
class LineChecker {
 public:
  /// `endpoint`: the path that every line must name. `is_served`: true for a name of the model.
  LineChecker(std::string endpoint, std::function<bool(std::string_view model)> is_served)
      : endpoint_(std::move(endpoint)), is_served_(std::move(is_served)) {}

  void add(std::string_view bytes);
  /// Call once, after the last piece.
  CheckedLines finish();

 private:
  bool is_full() const { return checked_.errors.size() >= kMaxLineErrors; }
  void end_line();
  void check(std::string_view line);
  void refuse(std::string code, std::string message, std::string param = {});

  std::string endpoint_;
  std::function<bool(std::string_view)> is_served_;
  CheckedLines checked_;
  std::unordered_set<std::string> ids_;
  std::string rest_;          // the line whose end has not arrived, unless it is too long
  std::uint64_t length_ = 0;  // of that line so far
  std::uint64_t offset_ = 0;  // of that line in the file
  std::uint32_t number_ = 0;  // of the last line, from 1
};

/// The answer of one line. A status of 400 and above makes it a failed one.
struct LineAnswer {
  int status = 200;
  std::string request_id;  ///< X-Request-Id of the exchange.
  std::string body;        ///< JSON.
};

/// What becomes of a line after an answer with this HTTP status.
enum class LineEnd : std::uint8_t {
  Completed,
  Failed,
  Again,     ///< A quota, a full pool, or a worker that cannot serve now: the line runs later.
  KeyEnded,  ///< The key is revoked or has expired: the whole batch fails.
};
LineEnd line_end(int status);

/// One line of a results file, with its line end.
std::string result_line(const std::string& custom_id, const LineAnswer& answer);
/// The result of a line that was not run.
std::string unrun_line(const std::string& custom_id, const std::string& code,
                       const std::string& message);

/// The custom_id of a results line; empty if the line is torn.
std::string answered_id(std::string_view line);

}  // namespace leasehold::batch
