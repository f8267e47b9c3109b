#include "ipc/control/queue_meter.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace leasehold;
using control::QueueCharge;
using control::QueueShares;

TEST_CASE("queue meter: a charge counts for its owner and in total, until it ends or moves") {
  QueueShares<std::string> shares(100);
  {
    QueueCharge charge;
    charge.set(10);
    CHECK(shares.owner_share("ann").taken == 0);
    charge.set_meter(shares.meter_of("ann"));
    charge.set(30);
    CHECK(shares.owner_share("ann").held == 30);
    charge.set_meter(shares.meter_of("bob"));
    charge.set(20);
    CHECK(shares.owner_share("ann").held == 0);
    CHECK(shares.owner_share("bob").held == 20);
    CHECK(shares.owner_share("bob").taken == 20);
  }
  CHECK(shares.owner_share("bob").taken == 0);
  CHECK(shares.meter_of("bob") == shares.meter_of("bob"));
}

TEST_CASE("queue meter: only the largest owner is beyond its share, and only while it is") {
  QueueShares<std::string> shares(100);
  CHECK_FALSE(shares.largest_beyond());
  QueueCharge anns, bobs;
  anns.set_meter(shares.meter_of("ann"));
  bobs.set_meter(shares.meter_of("bob"));
  anns.set(49);
  CHECK_FALSE(shares.largest_beyond());
  anns.set(50);
  CHECK(shares.largest_beyond() == "ann");
  anns.set(40);
  bobs.set(30);  // bob fits, but leaves less than ann holds
  CHECK(shares.largest_beyond() == "ann");
  anns.set(20);
  CHECK_FALSE(shares.largest_beyond());
  bobs.set(500);
  CHECK(shares.largest_beyond() == "bob");
}
