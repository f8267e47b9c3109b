/// Reads a complete list from the broker, which sends long lists in pages.
#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "ipc/client/parse_message.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// How to page through a list of `View`. `key_of` grows from one element to the next; `after`
/// returns the parameters of the call that continues after an element.
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
struct PagedList<wire::KeyView> {
  static constexpr std::string_view kMethod = wire::KeyList::kMethod;
  static ApiKeyId key_of(const wire::KeyView& view) { return view.key; }
  static wire::Json after(const wire::KeyView& view) {
    return wire::KeyList{.after = view.key}.to_json();
  }
};

template <>
struct PagedList<wire::AdapterView> {
  static constexpr std::string_view kMethod = wire::AdapterList::kMethod;
  static AdapterName key_of(const wire::AdapterView& view) { return view.adapter; }
  static wire::Json after(const wire::AdapterView& view) {
    return wire::AdapterList{.after = view.adapter}.to_json();
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
  /// Extents come before regions.
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

/// The part of a list that was read, page by page, in the broker's order. The list may change
/// between two pages, so it is not a snapshot. Threads: one.
template <class View>
class Pages {
 public:
  using List = PagedList<View>;

  /// The parameters of the call for the next page. Errors: MalformedMessage if the newest page did
  /// not advance, which would repeat forever.
  Result<wire::Json> next_params() const {
    if (!advances_) {
      return fail(Errc::MalformedMessage,
                  "the broker's pages of " + std::string(List::kMethod) + " do not advance");
    }
    return all_.empty() ? wire::Json::object() : List::after(all_.back());
  }
  /// Takes the reply to that call. Returns whether the list continues. Errors: MalformedMessage.
  Result<bool> add(const wire::Json& reply) {
    std::vector<View> page = TRY(parse_items<View>(reply));
    advances_ =
        !page.empty() && (all_.empty() || List::key_of(all_.back()) < List::key_of(page.back()));
    std::ranges::move(page, std::back_inserter(all_));
    return has_more(reply);
  }
  std::vector<View>& all() { return all_; }

 private:
  std::vector<View> all_;
  bool advances_ = true;
};

/// Returns elements of the list of `View`: reads whole pages until it has `enough` elements or the
/// list ends. `call(method, params)` makes one call to the broker and returns Result<wire::Json>.
/// Threads: those of `call`. Errors: those of `call` and of Pages.
template <class View, class Call>
Result<std::vector<View>> first_pages(Call&& call, std::size_t enough) {
  Pages<View> pages;
  while (true) {
    const wire::Json params = TRY(pages.next_params());
    const wire::Json reply = TRY(call(std::string(PagedList<View>::kMethod), params));
    const bool continues = TRY(pages.add(reply));
    if (!continues || pages.all().size() >= enough) return std::move(pages.all());
  }
}

/// Returns every element of the list.
template <class View, class Call>
Result<std::vector<View>> all_pages(Call&& call) {
  return first_pages<View>(std::forward<Call>(call), std::numeric_limits<std::size_t>::max());
}

}  // namespace leasehold::client
