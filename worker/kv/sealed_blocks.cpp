#include "worker/kv/sealed_blocks.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {
namespace {

using State = crypto_secretstream_xchacha20poly1305_state;

static_assert(LeaseSeal::kSealBytes == crypto_secretstream_xchacha20poly1305_ABYTES);

bool sodium_is_ready() {
  static const bool ready = ::sodium_init() >= 0;
  return ready;
}

State* state_of(unsigned char* secret) {
  return reinterpret_cast<State*>(secret);
}

const unsigned char* text(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* text(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

/// The additional data of a message: five little-endian numbers.
using Label = std::array<unsigned char, 40>;

Label label_of(LeaseId lease, std::uint64_t layout, const SealedBlock& at) {
  const std::array<std::uint64_t, 5> numbers{lease.slot, lease.generation, at.stream.value,
                                             at.number, layout};
  Label label{};
  for (std::size_t i = 0; i < label.size(); ++i)
    label[i] = static_cast<unsigned char>(numbers[i / 8] >> (i % 8 * 8));
  return label;
}

unsigned char tag_of(const SealedBlock& at) {
  return at.is_last ? crypto_secretstream_xchacha20poly1305_TAG_FINAL
                    : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
}

std::unexpected<Error> out_of_order(LeaseId lease, const SealedBlock& at) {
  return fail(Errc::FileCorrupt,
              fmt::format("block {} of a sequence of lease {} does not follow the one before it; "
                          "its rows are computed again",
                          at.number, to_string(lease)));
}

}  // namespace

void LeaseSeal::SecretDeleter::operator()(unsigned char* secret) const {
  ::sodium_free(secret);  // zeroes the memory
}

Result<LeaseSeal::Secret> LeaseSeal::allocate(std::size_t size_bytes) {
  Secret secret(static_cast<unsigned char*>(::sodium_malloc(size_bytes)));
  if (secret == nullptr) {
    return fail(Errc::OutOfMemory,
                fmt::format("no memory for a key of {} bytes; the blocks stay unsealed in memory",
                            size_bytes));
  }
  return secret;
}

Result<std::shared_ptr<LeaseSeal>> LeaseSeal::create(LeaseId lease, std::uint64_t layout) {
  if (!sodium_is_ready()) return fail(Errc::SystemError, "libsodium cannot start; no key is made");
  Secret key = TRY(allocate(crypto_secretstream_xchacha20poly1305_KEYBYTES));
  ::crypto_secretstream_xchacha20poly1305_keygen(key.get());
  return std::shared_ptr<LeaseSeal>(new LeaseSeal(lease, layout, std::move(key)));
}

Result<void> LeaseSeal::check_key() const {
  if (key_ != nullptr) return {};
  return fail(
      Errc::LeaseFenced,
      fmt::format("the key of lease {} is forgotten; acquire a new lease", to_string(lease_)));
}

Result<LeaseSeal::Stream*> LeaseSeal::stream_to_seal(const SealedBlock& at) {
  if (at.number == 0) {
    Secret state = TRY(allocate(sizeof(State)));
    Stream stream{.header = std::make_unique<unsigned char[]>(
                      crypto_secretstream_xchacha20poly1305_HEADERBYTES),
                  .state = std::move(state)};
    ::crypto_secretstream_xchacha20poly1305_init_push(state_of(stream.state.get()),
                                                      stream.header.get(), key_.get());
    streams_.insert_or_assign(at.stream, std::move(stream));
  }
  const auto found = streams_.find(at.stream);
  if (found == streams_.end() || found->second.is_opening || found->second.next != at.number)
    return out_of_order(lease_, at);  // an earlier block failed
  return &found->second;
}

Result<LeaseSeal::Stream*> LeaseSeal::stream_to_open(const SealedBlock& at) {
  const auto found = streams_.find(at.stream);
  if (found == streams_.end()) return out_of_order(lease_, at);
  Stream& stream = found->second;
  if (at.number == 0) {
    stream.next = 0;
    stream.is_opening = true;
    ::crypto_secretstream_xchacha20poly1305_init_pull(state_of(stream.state.get()),
                                                      stream.header.get(), key_.get());
  }
  if (!stream.is_opening || stream.next != at.number) return out_of_order(lease_, at);
  return &stream;
}

Result<void> LeaseSeal::seal(const SealedBlock& at, std::span<const std::byte> block,
                             std::span<std::byte> sealed) {
  expects(sealed.size() == block.size() + kSealBytes, "a sealed block has its size");
  const std::scoped_lock lock(mutex_);
  TRY(check_key());
  Stream& stream = *TRY(stream_to_seal(at));
  const Label label = label_of(lease_, layout_, at);
  ::crypto_secretstream_xchacha20poly1305_push(state_of(stream.state.get()), text(sealed), nullptr,
                                               text(block), block.size(), label.data(),
                                               label.size(), tag_of(at));
  ++stream.next;
  return {};
}

Result<void> LeaseSeal::open(const SealedBlock& at, std::span<const std::byte> sealed,
                             std::span<std::byte> block) {
  expects(sealed.size() == block.size() + kSealBytes, "a sealed block has its size");
  const std::scoped_lock lock(mutex_);
  TRY(check_key());
  Stream& stream = *TRY(stream_to_open(at));
  const Label label = label_of(lease_, layout_, at);
  unsigned char tag = 0;
  const bool is_genuine = ::crypto_secretstream_xchacha20poly1305_pull(
                              state_of(stream.state.get()), text(block), nullptr, &tag,
                              text(sealed), sealed.size(), label.data(), label.size()) == 0 &&
                          tag == tag_of(at);
  if (is_genuine) {
    ++stream.next;
    return {};
  }
  ::sodium_memzero(block.data(), block.size());
  return fail(Errc::FileCorrupt,
              fmt::format("block {} of a sequence of lease {} was changed in the spill file; its "
                          "rows are computed again",
                          at.number, to_string(lease_)));
}

void LeaseSeal::end_stream(SpillId stream) {
  const std::scoped_lock lock(mutex_);
  streams_.erase(stream);
}

void LeaseSeal::forget() {
  const std::scoped_lock lock(mutex_);
  key_.reset();
  streams_.clear();
}

}  // namespace leasehold
