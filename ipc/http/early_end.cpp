#include "ipc/http/early_end.hpp"

#include <fmt/format.h>

namespace leasehold::http {

std::string early_end_text(const Arrived& arrived) {
  if (!arrived.has_begun) return "the connection ended before the first byte";
  if (!arrived.has_head) return "the connection ended within the head";
  if (arrived.body_length) {
    return fmt::format("the connection ended after {} of {} bytes of the body", arrived.body_bytes,
                       *arrived.body_length);
  }
  return fmt::format("the connection ended after {} bytes of the body, before its end",
                     arrived.body_bytes);
}

}  // namespace leasehold::http
