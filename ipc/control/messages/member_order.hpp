/// Reads a part of a line and keeps the original order of members. Json sorts members and so loses
/// their order.
///
/// Internal to ipc/control. Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leasehold::control {

/// Returns the object at this path of keys as JSON text, or nothing when it does not exist. Of
/// duplicate keys the last one counts, as in Json. `line` is valid JSON; the caller has limited its
/// depth.
std::optional<std::string> object_in_source_order(std::string_view line,
                                                  std::span<const std::string_view> keys);

}  // namespace leasehold::control
