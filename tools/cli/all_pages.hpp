/// Everything in one of the broker's lists, page after page.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "ipc/control/messages.hpp"
#include "tools/cli/answer.hpp"

namespace leasehold::cli {

/// How a list that comes in pages goes on. `key_of` grows from one view to the next; `after`
/// asks for what follows a view.
template <class View>
struct PagedList;

template <>
struct PagedList<wire::LeaseView> {
  static constexpr const char* kMethod = "lease.list";
  static std::uint32_t key_of(const wire::LeaseView& view) { return view.lease.slot; }
  static wire::Json after(const wire::LeaseView& view) { return {{"after", view.lease.slot}}; }
};

template <>
struct PagedList<wire::TenantView> {
  static constexpr std::string_view kMethod = wire::TenantList::kMethod;
  static TenantId key_of(const wire::TenantView& view) { return view.policy.tenant; }
  static wire::Json after(const wire::TenantView& view) {
    return wire::TenantList{.after = view.policy.tenant}.to_json();
  }
};

template <>
struct PagedList<wire::ExtentView> {
  static constexpr std::string_view kMethod = wire::ExtentList::kMethod;
  static ExtentId key_of(const wire::ExtentView& view) { return view.extent; }
  static wire::Json after(const wire::ExtentView& view) {
    return wire::ExtentList{.after = view.extent}.to_json();
  }
};

template <>
struct PagedList<wire::QuarantineView> {
  static constexpr std::string_view kMethod = wire::QuarantineList::kMethod;
  static std::pair<bool, std::uint64_t> key_of(const wire::QuarantineView& view) {
    return {view.region.has_value(), view.region ? view.region->value : view.extent->value};
  }
  static wire::Json after(const wire::QuarantineView& view) {
    return wire::QuarantineList{.after_extent = view.extent, .after_region = view.region}.to_json();
  }
};

inline bool has_more(const wire::Json& reply) {
  const auto more = reply.find("more");
  return more != reply.end() && more->is_boolean() && more->get<bool>();
}

/// `ask(method, params)` is one call to the broker and gives a Result<wire::Json>.
/// Errors: those of `ask`; MalformedMessage for an answer that does not fit or does not get on.
template <class View, class Ask>
Result<std::vector<View>> all_pages(Ask&& ask) {
  using List = PagedList<View>;
  std::vector<View> all;
  wire::Json params = wire::Json::object();
  while (true) {
    const wire::Json reply = TRY(ask(std::string(List::kMethod), params));
    const auto items = reply.find("items");
    if (items == reply.end() || !items->is_array()) {
      return fail(Errc::MalformedMessage, "the broker's answer has no list of items");
    }
    const std::size_t before = all.size();
    for (const wire::Json& item : *items) all.push_back(TRY(read_answer<View>(item)));
    if (!has_more(reply)) return all;
    const bool advances = all.size() > before &&
                          (before == 0 || List::key_of(all[before - 1]) < List::key_of(all.back()));
    if (!advances) {
      return fail(Errc::MalformedMessage,
                  "the broker's answer to " + std::string(List::kMethod) + " does not get on");
    }
    params = List::after(all.back());
  }
}

}  // namespace leasehold::cli
