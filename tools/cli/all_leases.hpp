/// Every lease the broker lists, page after page.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "ipc/control/messages.hpp"
#include "tools/cli/answer.hpp"

namespace leasehold::cli {

inline bool has_more(const wire::Json& reply) {
  const auto more = reply.find("more");
  return more != reply.end() && more->is_boolean() && more->get<bool>();
}

/// `ask(method, params)` is one call to the broker and gives a Result<wire::Json>.
/// Errors: those of `ask`; MalformedMessage for an answer that does not fit or does not get on.
template <class Ask>
Result<std::vector<wire::LeaseView>> all_leases(Ask&& ask) {
  std::vector<wire::LeaseView> all;
  wire::Json params = wire::Json::object();
  while (true) {
    const wire::Json reply = TRY(ask("lease.list", params));
    const auto items = reply.find("items");
    if (items == reply.end() || !items->is_array()) {
      return fail(Errc::MalformedMessage, "the broker's answer has no list of items");
    }
    const std::size_t before = all.size();
    for (const wire::Json& item : *items) all.push_back(TRY(read_answer<wire::LeaseView>(item)));
    if (!has_more(reply)) return all;
    const bool gets_on =
        all.size() > before && (before == 0 || all[before - 1].lease.slot < all.back().lease.slot);
    if (!gets_on) {
      return fail(Errc::MalformedMessage, "the broker's list of leases does not get on");
    }
    params = {{"after", all.back().lease.slot}};
  }
}

}  // namespace leasehold::cli
