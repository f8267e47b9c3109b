#include <fmt/format.h>

template void fmt::detail::vformat_to<char>(buffer<char>&, string_view,
                                            basic_format_args<buffer_context<char>>, locale_ref);
