// The simulated sequence record: a reader that checks gets a whole text or none.
#include <catch2/catch.hpp>

#include "tests/simulation/text.hpp"

namespace leasehold::simulation {
namespace {

Text text_of(std::uint64_t id, std::uint32_t size) {
  Text text{.id = id};
  while (text.size < size) text.append(text.next());
  return text;
}

}  // namespace

TEST_CASE("text record: a reader that checks gets the newest whole text") {
  TextRecord record;
  CHECK(record.checked() == nullptr);
  record.begin_write(text_of(1, 1));
  record.finish_write(text_of(1, 1));
  record.begin_write(text_of(1, 2));
  CHECK(record.is_torn());
  REQUIRE(record.checked() != nullptr);
  CHECK(record.checked()->size == 1);
  record.finish_write(text_of(1, 2));
  CHECK(record.checked()->size == 2);
}

TEST_CASE("text record: a reader that checks gets nothing after two torn first commits") {
  TextRecord record;
  record.begin_write(text_of(1, 1));
  CHECK(record.checked() == nullptr);
  record.begin_write(text_of(1, 1));
  CHECK(record.checked() == nullptr);
  CHECK(record.unchecked() != nullptr);
}

TEST_CASE("text record: another text clears both commits") {
  TextRecord record;
  record.begin_write(text_of(1, 1));
  record.finish_write(text_of(1, 1));
  record.begin_write(text_of(2, 1));
  CHECK(record.checked() == nullptr);
}

}  // namespace leasehold::simulation
