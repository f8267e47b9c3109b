#include "ipc/region/present_memory.hpp"

#include "ipc/region/mapping.hpp"

namespace leasehold {

Result<MemoryObject> create_present(const MemoryObject::Spec& spec) {
  MemoryObject object = TRY(MemoryObject::create(spec));
  const Mapping mapping = TRY(Mapping::map(object.fd(), spec.size_bytes, MapAccess::ReadWrite));
  TRY(mapping.prefault(MapAccess::ReadWrite));
  return object;
}

}  // namespace leasehold
