/// Checks a table with one row for each error code.
#pragma once

#include <array>

#include "common/errc.hpp"

namespace leasehold {

/// True if the rows are in the order of Errc, so that the code of a row is its index.
template <class Row>
constexpr bool rows_follow_errc(const std::array<Row, kErrcCount>& rows) {
  for (int i = 0; i < kErrcCount; ++i)
    if (static_cast<int>(rows[static_cast<std::size_t>(i)].code) != i) return false;
  return true;
}

}  // namespace leasehold
