#!/bin/sh
# pod.sh ROOT HOSTNAME UID GID MOUNTS COMMAND…: what a kubelet and a container engine do, with what this machine has.
#
# As root, in namespaces of its own for mounts, names, processes and the network. ROOT is an empty folder that becomes the
# container's root: this machine's folders, but for those that KEPT_OUT names. MOUNTS is a file with a line for each mount:
# what, where, and how (bind or tmpfs).
set -e
root=$1 host=$2 uid=$3 gid=$4 mounts=$5
shift 5
hostname "$host"
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
for entry in /*; do
  name=${entry#/}
  case " proc $KEPT_OUT " in *" $name "*) continue ;; esac
  if [ -L "$entry" ]; then cp -P "$entry" "$root/$name"
  elif [ -d "$entry" ]; then mkdir "$root/$name" && mount --rbind "$entry" "$root/$name"; fi
done
mkdir "$root/proc"
mount -t proc proc "$root/proc"
while read -r what where how; do
  case $how in
    tmpfs) mkdir -p "$root$where" && mount -t tmpfs -o "$what" tmpfs "$root$where" ;;
    bind)
      if [ -d "$what" ]; then mkdir -p "$root$where"; else [ -e "$root$where" ] || { mkdir -p "$(dirname "$root$where")" && touch "$root$where"; }; fi
      mount --bind "$what" "$root$where"
      ;;
  esac
done <"$mounts"
exec chroot "$root" setpriv --reuid "$uid" --regid "$gid" --groups "$gid" --no-new-privs --bounding-set=-all "$@"
