#include "broker/journal/load_operator_actions.hpp"

#include <fmt/format.h>

namespace leasehold::journal {

Result<std::vector<wire::OperatorActionView>> load_newest_operator_actions(Database& database,
                                                                           std::size_t at_most) {
  Statement rows =
      TRY(database.prepare(fmt::format("SELECT at_unix_s, uid, action, object, reason, done FROM "
                                       "operator_action ORDER BY operator_action DESC LIMIT {}",
                                       at_most)));
  std::vector<wire::OperatorActionView> actions;
  while (TRY(rows.next())) {
    wire::OperatorActionView& action = actions.emplace_back();
    rows.read(action.at_unix_s);
    rows.read(action.uid);
    rows.read(action.action);
    rows.read(action.object);
    rows.read(action.reason);
    rows.read(action.done);
  }
  return actions;
}

}  // namespace leasehold::journal
