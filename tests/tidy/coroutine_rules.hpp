/// Forms of co_await that the compiler of this tree translates wrongly.
#pragma once

#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

/// GCC 12 mistranslates a loop whose condition has co_await beside && or ||, and a statement that
/// has both co_await and ?: (temporaries are destroyed twice or never made). The awaited value gets
/// a name of its own first.
Findings mistranslated_awaits(const Sources& sources);

}  // namespace leasehold::tidy
