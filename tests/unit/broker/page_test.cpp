#include "broker/server/page.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace leasehold;

TEST_CASE("page: items that do not fit are on the next page") {
  Page page(Page::kMaxItems);
  const std::string third(Page::kMaxBytes / 3 + 1, 'x');

  CHECK(page.add(third));
  CHECK(page.add(third));
  CHECK_FALSE(page.add(third));

  CHECK(page.size() == 2);
  CHECK(std::move(page).take().size() == 2);
}

TEST_CASE("page: one item always fits, since an empty page is the end") {
  Page page(Page::kMaxItems);

  CHECK(page.add(std::string(Page::kMaxBytes + 1, 'x')));

  CHECK_FALSE(page.add("short"));
  CHECK(page.size() == 1);
}

TEST_CASE("page: a limit is kept, also a limit of zero") {
  Page one(1);
  CHECK(one.add(1));
  CHECK_FALSE(one.add(2));
  CHECK_FALSE(Page(0).add(1));
}
