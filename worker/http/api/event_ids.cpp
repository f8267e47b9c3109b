#include "worker/http/api/event_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/checksum.hpp"
#include "common/cli/print_error.hpp"
#include "worker/http/api/api_answer.hpp"

namespace leasehold::http {
namespace {

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

constexpr std::size_t kChecksumDigits = 8;

/// 32 bits are enough to tell apart the few workers that one client meets.
std::string checksum_of(std::string_view text) {
  const std::uint64_t sum = Checksum::of(text.data(), text.size());
  return fmt::format("{:08x}", static_cast<std::uint32_t>(sum ^ (sum >> 32)));
}

bool is_checksum(std::string_view text) {
  return text.size() == kChecksumDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The parts of an id, between its dashes. `created` is nullopt in an id of two parts.
struct IdParts {
  std::string_view place, checksum;
  std::optional<std::string_view> created;
};

IdParts parts_of(std::string_view id) {
  const auto first = std::min(id.find('-'), id.size());
  std::string_view rest = id.substr(std::min(first + 1, id.size()));
  IdParts parts{.place = id.substr(0, first), .checksum = rest, .created = {}};
  const auto second = rest.find('-');
  if (second == std::string_view::npos) return parts;
  parts.checksum = rest.substr(0, second);
  parts.created = rest.substr(second + 1);
  return parts;
}

}  // namespace

std::optional<std::int64_t> created_in(std::string_view event_id) {
  const auto created = parts_of(event_id).created;
  return created ? std::optional<std::int64_t>(number_of(*created)) : std::nullopt;
}

std::optional<EventIds::Id> EventIds::parse(std::string_view text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto position = number_of(text.substr(0, dot));
  const auto index = number_of(text.substr(dot + 1));
  if (!position || !index) return std::nullopt;
  return Id{*position, *index};
}

Result<EventIds> EventIds::after(const std::optional<std::string>& last_event_id,
                                 std::string_view how_computed, std::int64_t created_unix_s) {
  EventIds ids;
  ids.checksum_ = checksum_of(how_computed);
  ids.created_unix_s_ = created_unix_s;
  if (!last_event_id) return ids;
  const IdParts sent = parts_of(*last_event_id);
  ids.last_ = parse(sent.place);
  const bool has_time = !sent.created || number_of(*sent.created);
  if (!ids.last_ || !is_checksum(sent.checksum) || !has_time) {
    return fail(Errc::BadRequest, fmt::format("Last-Event-ID is '{}'; send the id of an event of "
                                              "this request, or leave it out",
                                              printable(*last_event_id)));
  }
  if (sent.checksum == ids.checksum_) return ids;
  return fail(Errc::RequestIdConflict,
              fmt::format("the event {} is of a text that was computed otherwise, and this worker "
                          "computes {}; begin the text again under another request_id",
                          *last_event_id, how_computed));
}

void EventIds::number(std::uint32_t position, ServerEvents& events) {
  if (position != next_.position) next_ = {position, 0};
  ServerEvents wanted;
  for (ServerEvent& event : events) {
    if (event.data != kDone) {
      const Id id{position, next_.index++};
      if (last_ && id <= *last_) continue;
      event.id = fmt::format("{}.{}-{}-{}", id.position, id.index, checksum_, created_unix_s_);
    }
    wanted.push_back(std::move(event));
  }
  events = std::move(wanted);
}

}  // namespace leasehold::http
