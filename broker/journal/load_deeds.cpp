#include "broker/journal/load_deeds.hpp"

#include <fmt/format.h>

namespace leasehold::journal {

Result<std::vector<wire::DeedView>> load_newest_deeds(Database& database, std::size_t at_most) {
  Statement rows = TRY(database.prepare(fmt::format(
      "SELECT at_unix_s, uid, deed, object, reason, done FROM audit ORDER BY audit DESC LIMIT {}",
      at_most)));
  std::vector<wire::DeedView> deeds;
  while (TRY(rows.next())) {
    wire::DeedView& deed = deeds.emplace_back();
    rows.read(deed.at_unix_s);
    rows.read(deed.uid);
    rows.read(deed.deed);
    rows.read(deed.object);
    rows.read(deed.reason);
    rows.read(deed.done);
  }
  return deeds;
}

}  // namespace leasehold::journal
