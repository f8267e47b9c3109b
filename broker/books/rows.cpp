#include "broker/books/rows.hpp"

#include "common/checksum.hpp"

namespace leasehold::journal {
namespace {

struct Apply {
  Image& image;

  template <class ObjectRow>
  void operator()(const ObjectRow& row) const {
    objects<ObjectRow>(image).insert_or_assign(id_of(row), row);
  }
  template <class ObjectRow>
  void operator()(const Gone<ObjectRow>& gone) const {
    objects<ObjectRow>(image).erase(gone.id);
  }
  void operator()(const HighWaterMarks& row) const { image.reserved = row; }
  void operator()(const ExtentSizeRow& row) const {
    image.extent_size_bytes = row.extent_size_bytes;
  }
  void operator()(const BootRow& row) const { image.boot_id = row.boot_id; }
  void operator()(const OperatorActionRow&) const {}  // records are not part of the state
  void operator()(const UsageRow&) const {}
  void operator()(const RevocationRow&) const {}
  void operator()(const LeaseGrantedRow&) const {}
  void operator()(const LeaseErasedRow&) const {}
  void operator()(const AuditKeyRow&) const {}
};

}  // namespace

void apply(Image& image, const Row& row) {
  std::visit(Apply{image}, row);
}

std::uint64_t digest(std::string_view fingerprint) {
  return Checksum::of(fingerprint.data(), fingerprint.size());
}

}  // namespace leasehold::journal
