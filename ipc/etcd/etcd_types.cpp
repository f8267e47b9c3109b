#include "ipc/etcd/etcd_types.hpp"

#include "common/expects.hpp"

namespace leasehold::etcd {

KeyRange KeyRange::prefix(std::string prefix) {
  expects(!prefix.empty() && prefix.back() != '\xFF', "a key behind all with the prefix exists");
  KeyRange range{.first = prefix, .end = std::move(prefix)};
  range.end.back() = static_cast<char>(range.end.back() + 1);
  return range;
}

}  // namespace leasehold::etcd
