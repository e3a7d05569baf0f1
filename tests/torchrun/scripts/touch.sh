#!/bin/sh
# touch.sh DIRECTORY: leaves a file named after its rank.
echo "creating $1/$RANK"
touch "$1/$RANK"
