#include "tests/link/asio_world.hpp"
#include "tests/link/transport_contract.hpp"

TYPE_TO_STRING(asio_plain);
TYPE_TO_STRING(asio_tls);
TROUPE_TRANSPORT_CONTRACT(asio_plain, asio_tls);
