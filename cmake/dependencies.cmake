# What the build needs of others. All of it is in Debian 12 and Ubuntu 24.04.
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json 3.10 REQUIRED)
