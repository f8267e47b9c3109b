#include "tools/brokerctl/event_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/brokerctl/views.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

constexpr std::uint64_t kPageItems = 1000;
constexpr Duration kLookEvery = std::chrono::milliseconds(100);

struct Page {
  std::vector<Json> items;
  std::uint64_t oldest = 0;  ///< The first event the broker still has.
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
    return fail(Errc::MalformedMessage, "the broker's answer has no list of events");
  }
  Page page;
  page.oldest = TRY(number(reply, "oldest"));
  page.newest = TRY(number(reply, "newest"));
  for (const Json& item : *items) {
    if (!item.is_object()) return fail(Errc::MalformedMessage, "an event is not an object");
    (void)TRY(number(item, "sequence"));
    page.items.push_back(item);
  }
  return page;
}

std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class Reader {
 public:
  Reader(const ListEvents& wish, Output output, const Surroundings& around)
      : wish_(wish), output_(output), around_(around) {}

  Result<void> read() {
    after_ = wish_.after ? *wish_.after : TRY(ask(0, 0)).newest;
    std::optional<std::uint64_t> last_wanted;  // busy brokers write on while we read
    while (true) {
      const Page page = TRY(ask(after_, std::min(kPageItems, left())));
      last_wanted = wish_.follow ? page.newest : last_wanted.value_or(page.newest);
      take(page);
      if (left() == 0) break;
      const bool caught_up = page.items.empty() || after_ >= *last_wanted;
      if (caught_up && (!wish_.follow || !around_.wait(kLookEvery))) break;
    }
    if (is_document()) {
      *around_.out << Json{{"items", std::move(document_)}, {"missed", missed_}}.dump(
                          2, ' ', false, Json::error_handler_t::replace)
                   << '\n';
    }
    around_.out->flush();
    return {};
  }

 private:
  Result<Page> ask(std::uint64_t after, std::uint64_t limit) {
    return read_page(TRY(around_.call("event.list", {{"after", after}, {"limit", limit}})));
  }

  std::uint64_t left() const {
    return wish_.limit == 0 ? kPageItems : wish_.limit - std::min(wish_.limit, shown_);
  }

  bool is_document() const { return output_ == Output::Json && !wish_.follow; }

  void take(const Page& page) {
    if (page.oldest > after_ + 1) tell_missed(page.oldest);
    for (const Json& event : page.items) {
      after_ = std::max(after_, event.at("sequence").get<std::uint64_t>());
      if (is_wanted(event)) show(event);
    }
    around_.out->flush();
  }

  void tell_missed(std::uint64_t oldest) {
    const std::uint64_t missed = oldest - after_ - 1;
    missed_ += missed;
    if (output_ == Output::Table) {
      *around_.out << fmt::format(
          "… {} events after {} are gone: the broker keeps the newest only; going on at {}\n",
          missed, after_, oldest);
    } else if (wish_.follow) {
      *around_.out << one_line({{"event", "events_missed"},
                                {"after", after_},
                                {"oldest", oldest},
                                {"missed", missed}})
                   << '\n';
    }
    after_ = oldest - 1;
  }

  bool is_wanted(const Json& event) const {
    const auto says = [&event](const char* field, const std::string& text) {
      const auto found = event.find(field);
      return found != event.end() && *found == text;
    };
    if (wish_.tenant && !says("tenant", wish_.tenant->value)) return false;
    if (!wish_.lease) return true;
    const std::string lease = to_string(*wish_.lease);
    return says("lease", lease) || says("old_lease", lease) || says("new_lease", lease);
  }

  void show(const Json& event) {
    ++shown_;
    if (is_document()) {
      document_.push_back(event);
    } else {
      *around_.out << (output_ == Output::Json ? one_line(event) : event_line(event)) << '\n';
    }
  }

  const ListEvents& wish_;
  Output output_;
  const Surroundings& around_;
  std::uint64_t after_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t missed_ = 0;
  Json document_ = Json::array();
};

}  // namespace

Result<void> show_events(const ListEvents& wish, Output output, const Surroundings& around) {
  return Reader(wish, output, around).read();
}

}  // namespace leasehold::brokerctl
