/// The name of a host in its cell.
#pragma once

#include "common/ids.hpp"

namespace leasehold {

using HostName = StrongName<struct CellHostTag>;

}  // namespace leasehold
