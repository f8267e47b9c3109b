#include "worker/http/event_ids.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <utility>

#include "common/print_error.hpp"
#include "worker/http/api_answer.hpp"

namespace leasehold::http {
namespace {

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<EventIds::Id> EventIds::parse(std::string_view text) {
  const auto dot = text.find('.');
  const auto position = number_of(text.substr(0, dot));
  std::optional index = std::numeric_limits<std::uint32_t>::max();
  if (dot != std::string_view::npos) index = number_of(text.substr(dot + 1));
  if (!position || !index) return std::nullopt;
  return Id{*position, *index};
}

Result<EventIds> EventIds::after(const std::optional<std::string>& last_event_id) {
  EventIds ids;
  if (!last_event_id) return ids;
  ids.last_ = parse(*last_event_id);
  if (ids.last_) return ids;
  return fail(Errc::BadRequest, fmt::format("Last-Event-ID is '{}'; send the id of an event of "
                                            "this request, or leave it out",
                                            printable(*last_event_id)));
}

void EventIds::number(std::uint32_t position, ServerEvents& events) {
  if (position != next_.position) next_ = {position, 0};
  ServerEvents wanted;
  for (ServerEvent& event : events) {
    if (event.data != kDone) {
      const Id id{position, next_.index++};
      if (last_ && id <= *last_) continue;
      event.id = fmt::format("{}.{}", id.position, id.index);
    }
    wanted.push_back(std::move(event));
  }
  events = std::move(wanted);
}

}  // namespace leasehold::http
