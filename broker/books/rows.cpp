#include "broker/books/rows.hpp"

#include "common/checksum.hpp"

namespace leasehold::journal {
namespace {

struct Apply {
  Image& image;

  void operator()(const TenantRow& row) const { image.tenants[row.policy.tenant] = row; }
  void operator()(const ApiKeyRow& row) const { image.api_keys[row.id] = row; }
  void operator()(const WorkerRow& row) const { image.workers[row.id] = row; }
  void operator()(const LeaseRow& row) const { image.leases[row.id] = row; }
  void operator()(const ExtentRow& row) const { image.extents[row.id] = row; }
  void operator()(const RegionRow& row) const { image.regions[row.id] = row; }
  void operator()(const Reserved& row) const { image.reserved = row; }
  void operator()(const ShapeRow& row) const { image.extent_size_bytes = row.extent_size_bytes; }
  void operator()(const BootRow& row) const { image.boot_id = row.boot_id; }
  void operator()(const OperatorActionRow&) const {}  // records are not part of the state
  void operator()(const UsageRow&) const {}
  void operator()(const RevocationRow&) const {}
  void operator()(const TenantGone& row) const { image.tenants.erase(row.id); }
  void operator()(const ApiKeyGone& row) const { image.api_keys.erase(row.id); }
  void operator()(const WorkerGone& row) const { image.workers.erase(row.id); }
  void operator()(const LeaseGone& row) const { image.leases.erase(row.id); }
  void operator()(const ExtentGone& row) const { image.extents.erase(row.id); }
  void operator()(const RegionGone& row) const { image.regions.erase(row.id); }
};

}  // namespace

void apply(Image& image, const Row& row) {
  std::visit(Apply{image}, row);
}

std::uint64_t digest(std::string_view fingerprint) {
  return Checksum::of(fingerprint.data(), fingerprint.size());
}

}  // namespace leasehold::journal
