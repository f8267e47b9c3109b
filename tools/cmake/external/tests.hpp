/// Precompiled for test programs.
#pragma once

#include <catch2/catch.hpp>

#include "tools/cmake/external/network.hpp"
