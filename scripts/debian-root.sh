# Sourced by python-matrix and qemu-aarch64: folders with a Debian system of another release or processor, in which tests run.
#
# DEBIAN_MIRROR  a Debian mirror (default: the first that this machine's apt uses)
# DEBIAN_BIND    further folders of this machine to be seen inside, such as those that pip installs from

need_root() {
    if [ "$(id -u)" != 0 ]; then echo "$(basename "$0") has to be root, for chroot and mount" >&2; exit 2; fi
    command -v debootstrap >/dev/null || { echo "install debootstrap first (a Debian package)" >&2; exit 2; }
}

debian_mirror() {
    echo "${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | head -1)}"
}

# make_root FOLDER SUITE ARCHITECTURE PACKAGES: made once, kept for the next run. One that was interrupted is made anew.
make_root() {
    if [ -e "$1/.made" ]; then return; fi
    rm -rf "$1"
    debootstrap --variant=minbase --arch="$3" --include="$4" "$2" "$1" "$(debian_mirror)"
    touch "$1/.made"
}

# unpack_root FOLDER SUITE ARCHITECTURE PACKAGES: the same for another processor, whose programs an emulator runs. dpkg's
# configuration of the packages would take most of an hour so, and nothing here needs it: debootstrap's first stage, which
# is native, downloads the packages, and all of them are unpacked.
unpack_root() {
    if [ -e "$1/.made" ]; then return; fi
    rm -rf "$1"
    debootstrap --foreign --variant=minbase --arch="$3" --include="$4" "$2" "$1" "$(debian_mirror)"
    for package in "$1"/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$1"
    done
    for folder in proc sys dev; do  # debootstrap makes links of some, to this machine's
        if [ -L "$1/$folder" ]; then rm "$1/$folder"; mkdir "$1/$folder"; fi
    done
    # What the packages' scripts would have made.
    cp "$1/usr/share/base-passwd/passwd.master" "$1/etc/passwd"
    cp "$1/usr/share/base-passwd/group.master" "$1/etc/group"
    touch "$1/.made"
}

mounted=()
leave_root() {
    for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount -l "${mounted[i]}" || true; done
    mounted=()
}
trap leave_root EXIT

# enter_root FOLDER: mounts what a process inside needs; a fresh copy of the checkout is in /checkout.
enter_root() {
    for folder in /dev /proc /sys /etc/ssl ${DEBIAN_BIND:-}; do
        mkdir -p "$1$folder"
        mount --bind "$folder" "$1$folder"
        mounted+=("$1$folder")
    done
    cp /etc/resolv.conf "$1/etc/" 2>/dev/null || true
    if [ -e /etc/pip.conf ]; then cp /etc/pip.conf "$1/etc/pip.conf"; fi
    rm -rf "$1/checkout"
    mkdir "$1/checkout"
    git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null |
        tar -x -C "$1/checkout"
}

# inside FOLDER COMMAND...: with an environment of its own; bytecode is kept, as the checkout is copied anew for each run.
inside() {
    chroot "$1" env -i HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 PARAKEET_CACHE_DIR=/root/cache CI="${CI:-}" \
        PYTHONUNBUFFERED=1 PYTHONPYCACHEPREFIX=/root/bytecode "${@:2}"
}

# install FOLDER PYTHON EXTRAS: a virtual environment with the checkout in it, of this python.
install() {
    [ -e "$1/venv/bin/python" ] || inside "$1" "$2" -m venv /venv
    inside "$1" /venv/bin/python -m pip install --quiet --disable-pip-version-check -e "/checkout[$3]"
}

# install_from_here FOLDER PYTHON VERSION PLATFORMS EXTRAS: the same for a root of another processor: this machine's pip
# takes the wheels of those platforms, and the environment has no pip of its own.
install_from_here() {
    local platforms=() platform
    for platform in $4; do platforms+=(--platform "$platform"); done
    [ -e "$1/venv/bin/python" ] || inside "$1" "$2" -m venv --without-pip /venv
    if [ ! -e "$1/venv/.installed" ]; then
        "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --python-version "$3" "${platforms[@]}" \
            --only-binary=:all: --target "$1/venv/lib/python$3/site-packages" "./[$5]"
        touch "$1/venv/.installed"
    fi
}
