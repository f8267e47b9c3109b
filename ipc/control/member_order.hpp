/// A part of a line in the order it was written in. Json sorts the members of objects, which is no
/// loss but where their order says something.
///
/// Internal to ipc/control. Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leasehold::control {

/// The object under these keys, one within the other, as JSON. Nothing when there is none. Of a key
/// that is there twice the last counts, as in Json. `line` is JSON; whoever parsed it has bounded
/// its depth.
std::optional<std::string> object_in_source_order(std::string_view line,
                                                  std::span<const std::string_view> keys);

}  // namespace leasehold::control
