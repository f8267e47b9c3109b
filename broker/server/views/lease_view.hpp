/// The view of one lease for operators. Pure.
#pragma once

#include "broker/books/state.hpp"

namespace leasehold {

wire::LeaseView lease_view(const State& state, const LeaseRecord& record);

}  // namespace leasehold
