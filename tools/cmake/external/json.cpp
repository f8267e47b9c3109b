#include <nlohmann/json.hpp>

#define LEASEHOLD_JSON_TEMPLATE template
#include "tools/cmake/external/json_templates.hpp"
