#include "tests/checks/soak/canary.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "common/random.hpp"

namespace leasehold::soak {
namespace {

constexpr int kWords = 5;
constexpr int kLettersPerWord = 6;
constexpr const char* kTextOwner = "a published text";  // its extents contain no canary

using Owners = std::map<LeaseId, std::string>;

Result<Owners> owners_of(BrokerView& broker) {
  Owners owners;
  for (const wire::LeaseView& lease : TRY(broker.leases())) {
    if (lease.scope == wire::LeaseScope::Shared) owners[lease.lease] = kTextOwner;
    if (!lease.tenant.empty()) owners[lease.lease] = lease.tenant;
  }
  return owners;
}

Result<std::vector<std::byte>> read_whole(const UniqueFd& object, std::uint64_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        ::pread(object.get(), bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(Errc::SystemError, "pread", errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

/// Searches the memory of one extent of `owner` for every canary.
void judge_bytes(std::span<const std::byte> bytes, const std::string& owner,
                 std::span<const Canary> canaries, runner::CanaryReport& report) {
  ++report.extents_read;
  for (const Canary& canary : canaries) {
    if (!holds(bytes, canary)) continue;
    if (canary.tenant == owner) {
      ++report.own_found;
    } else {
      report.foreign.push_back(
          fmt::format("the canary of {} is in the memory of {}", canary.tenant, owner));
    }
  }
}

}  // namespace

std::string canary_words(std::uint64_t seed, std::uint64_t number) {
  SeededRandom random(random_at(seed, number));
  std::string words;
  for (int word = 0; word < kWords; ++word) {
    for (int letter = 0; letter < kLettersPerWord; ++letter) {
      words += static_cast<char>('a' + random.below(26));
    }
    words += ' ';
  }
  return words;
}

bool holds(std::span<const std::byte> memory, const Canary& canary) {
  const std::size_t size = canary.tokens.size() * sizeof(std::int32_t);
  return ::memmem(memory.data(), memory.size(), canary.tokens.data(), size) != nullptr;
}

Result<void> find_canaries(BrokerView& broker, std::span<const Canary> canaries,
                           runner::CanaryReport& report) {
  const Owners owners = TRY(owners_of(broker));
  for (const wire::ExtentView& view : TRY(broker.extents())) {
    if (!view.lease || !owners.contains(*view.lease)) continue;
    const auto object = broker.open_extent(view.extent);
    if (!object && object.error().code == Errc::ConnectionLost) {
      return std::unexpected(object.error());
    }
    if (!object) continue;  // the extent was freed since the list was made
    const auto bytes = TRY(read_whole(*object, view.size_bytes));
    judge_bytes(bytes, owners.at(*view.lease), canaries, report);
  }
  return {};
}

void find_canaries(const std::string& tenant, std::span<const std::int32_t> stream,
                   std::span<const Canary> canaries, runner::CanaryReport& report) {
  for (const Canary& canary : canaries) {
    if (canary.tenant == tenant || std::ranges::search(stream, canary.tokens).empty()) continue;
    report.foreign.push_back(
        fmt::format("the canary of {} is in the stream of {}", canary.tenant, tenant));
  }
}

}  // namespace leasehold::soak
