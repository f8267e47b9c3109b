#include "tools/brokerctl/repeated_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "tools/brokerctl/views.hpp"
#include "tools/cli/json_text.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

constexpr std::uint64_t kPageItems = 1000;
constexpr Duration kEventPollInterval = std::chrono::milliseconds(100);

struct Page {
  std::vector<Json> items;
  std::uint64_t newest = 0;
};

Result<std::uint64_t> number(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_unsigned()) {
    return fail(Errc::MalformedMessage, fmt::format("the broker's events have no {}", field));
  }
  return found->get<std::uint64_t>();
}

Result<Page> read_page(const Json& reply) {
  const auto items = reply.find("items");
  if (items == reply.end() || !items->is_array()) {
    return fail(Errc::MalformedMessage, "the broker's reply has no list of events");
  }
  Page page;
  page.newest = TRY(number(reply, "newest"));
  for (const Json& item : *items) {
    if (!item.is_object()) return fail(Errc::MalformedMessage, "an event is not an object");
    (void)TRY(number(item, "sequence"));
    page.items.push_back(item);
  }
  return page;
}

class EventReader {
 public:
  EventReader(const ListEvents& request, Output output, const Dependencies& dependencies)
      : request_(request), output_(output), dependencies_(dependencies) {}

  Result<void> read() {
    after_ = request_.after ? *request_.after : TRY(query(0, 0)).newest;
    // Without --follow, new events do not extend the list.
    std::optional<std::uint64_t> last_sequence;
    while (true) {
      const Page page = TRY(query(after_, std::min(kPageItems, left())));
      if (!last_sequence && after_ > page.newest) return beyond_newest(page.newest);
      last_sequence = request_.follow ? page.newest : last_sequence.value_or(page.newest);
      take(page);
      if (left() == 0) break;
      const bool caught_up = page.items.empty() || after_ >= *last_sequence;
      if (caught_up && (!request_.follow || !dependencies_.wait(kEventPollInterval))) break;
    }
    report_missed();
    if (is_document()) {
      const Json document{{"items", std::move(document_)}, {"missed", missed_}};
      *dependencies_.out << cli::json_text(document, 2) << '\n';
    }
    dependencies_.out->flush();
    return {};
  }

 private:
  Result<Page> query(std::uint64_t after, std::uint64_t limit) {
    return read_page(TRY(dependencies_.call("event.list", {{"after", after}, {"limit", limit}})));
  }

  /// Refuses a number beyond the newest event: all events up to it would be left out silently.
  Result<void> beyond_newest(std::uint64_t newest) const {
    return fail(Errc::BadRequest,
                fmt::format("--after is {}, but the newest event is {}; a restarted broker numbers "
                            "its events from 1, so begin again with --after 0",
                            after_, newest));
  }

  std::uint64_t left() const {
    return request_.limit == 0 ? kPageItems : request_.limit - std::min(request_.limit, shown_);
  }

  bool is_document() const { return output_ == Output::Json && !request_.follow; }

  void take(const Page& page) {
    for (const Json& event : page.items) {
      const auto sequence = event.at("sequence").get<std::uint64_t>();
      if (sequence > after_ + 1) note_missed(sequence);
      after_ = std::max(after_, sequence);
      if (!matches(event)) continue;
      report_missed();
      show(event);
    }
    if (request_.follow) report_missed();
    dependencies_.out->flush();
  }

  void note_missed(std::uint64_t next) {
    if (gap_.missed == 0) gap_.after = after_;
    gap_.missed += next - after_ - 1;
    gap_.next = next;
  }

  /// One line for all gaps since the last event that was shown.
  void report_missed() {
    const auto [after, next, missed] = std::exchange(gap_, {});
    if (missed == 0) return;
    missed_ += missed;
    if (output_ != Output::Json) {
      *dependencies_.out << fmt::format(
          "… {} events after {} are missing, because the broker keeps a bounded number; continuing "
          "at {}\n",
          missed, after, next);
    } else if (request_.follow) {
      *dependencies_.out << cli::json_text({{"event", "events_missed"},
                                            {"after", after},
                                            {"next", next},
                                            {"missed", missed}})
                         << '\n';
    }
  }

  bool matches(const Json& event) const {
    const auto field_equals = [&event](const char* field, const std::string& text) {
      const auto found = event.find(field);
      return found != event.end() && *found == text;
    };
    if (request_.tenant && !field_equals("tenant", request_.tenant->value)) return false;
    if (!request_.lease) return true;
    const std::string lease = to_string(*request_.lease);
    return field_equals("lease", lease) || field_equals("old_lease", lease) ||
           field_equals("new_lease", lease);
  }

  void show(const Json& event) {
    ++shown_;
    if (is_document()) {
      document_.push_back(event);
    } else {
      *dependencies_.out << (output_ == Output::Json ? cli::json_text(event) : event_line(event))
                         << '\n';
    }
  }

  const ListEvents& request_;
  Output output_;
  const Dependencies& dependencies_;
  std::uint64_t after_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t missed_ = 0;
  struct Gap {
    std::uint64_t after = 0;
    std::uint64_t next = 0;
    std::uint64_t missed = 0;
  } gap_{};  // the gap that is not reported yet
  Json document_ = Json::array();
};

}  // namespace

Result<void> show_events(const ListEvents& request, Output output,
                         const Dependencies& dependencies) {
  return EventReader(request, output, dependencies).read();
}

}  // namespace leasehold::brokerctl
