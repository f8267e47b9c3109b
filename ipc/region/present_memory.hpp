/// New memory whose pages are present before another process maps it.
///
/// Threads: any, but it takes as long as clearing the memory: do not call it on an I/O thread.
#pragma once

#include "ipc/region/memory_object.hpp"

namespace leasehold {

/// As MemoryObject::create, but all pages are present and zero, as huge pages where the kernel
/// makes them. The object is mapped only during the call. Errors: as create; OutOfMemory.
Result<MemoryObject> create_present(const MemoryObject::Spec& spec);

}  // namespace leasehold
