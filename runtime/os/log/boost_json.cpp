// Boost.JSON without its shared library, which Debian 12 has no package of for Boost 1.81.
#include <boost/json/src.hpp>
