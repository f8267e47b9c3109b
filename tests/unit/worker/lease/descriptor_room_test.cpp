#include "worker/lease/descriptor_room.hpp"

#include <catch2/catch.hpp>

using leasehold::extents_for;

TEST_CASE("descriptor room: connections and transfers keep a share of every limit") {
  CHECK(extents_for(65'536) == 64'896);
  CHECK(extents_for(1'024) == 512);
  CHECK(extents_for(256) == 128);
  CHECK(extents_for(0) == 0);
  CHECK(extents_for(~0ull) == 1u << 31);
}
