package host

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

func names(root fs.FS, dir string) []string {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func disks(root fs.FS) []Disk {
	const base = "sys/block"
	var out []Disk
	for _, name := range names(root, base) {
		if slices.ContainsFunc([]string{"loop", "ram", "zram", "sr", "fd", "dm-", "md", "nbd"}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue // part of another disk, or memory
		}
		at := path.Join(base, name)
		d := Disk{Name: name, Scheduler: bracketed(line(root, path.Join(at, "queue/scheduler")))}
		d.Model = machine(line(root, path.Join(at, "device/vendor")), line(root, path.Join(at, "device/model")))
		if strings.HasPrefix(d.Model, "0x") {
			d.Model = "" // the vendor number of a virtual bus
		}
		d.Firmware = firstOf(line(root, path.Join(at, "device/firmware_rev")), line(root, path.Join(at, "device/rev")))
		// SCSI has room for 16 letters of a model and 4 of a version; an ATA
		// disk's own data have both in full.
		if model, firmware, ok := ataIdentity([]byte(text(root, path.Join(at, "device/vpd_pg89")))); ok {
			d.Model, d.Firmware = model, firmware
		}
		sectors, _ := strconv.ParseUint(line(root, path.Join(at, "size")), 10, 54)
		d.Bytes = sectors * 512 // in units of 512 bytes, whatever the device's sectors are
		if d.Bytes == 0 {
			continue
		}
		d.Sector, _ = strconv.Atoi(line(root, path.Join(at, "queue/logical_block_size")))
		if d.Physical, _ = strconv.Atoi(line(root, path.Join(at, "queue/physical_block_size"))); d.Physical == d.Sector {
			d.Physical = 0
		}
		d.Cache = line(root, path.Join(at, "queue/write_cache"))
		switch rotates := line(root, path.Join(at, "queue/rotational")); {
		case strings.HasPrefix(name, "nvme"):
			d.Kind = "nvme"
		case strings.HasPrefix(name, "vd") || strings.HasPrefix(name, "xvd"):
			d.Kind = "virtual"
		case rotates == "1":
			d.Kind = "hdd"
		case rotates == "0":
			d.Kind = "ssd"
		}
		if out = append(out, d); len(out) == maxListed {
			break
		}
	}
	return out
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// ataIdentity reads an ATA disk's model and firmware from its page 0x89 of vital
// product data (SAT 12.4.2): from byte 60 on is what the disk itself answered to
// IDENTIFY DEVICE, whose words hold two letters each, the first in the higher
// byte.
func ataIdentity(page []byte) (model, firmware string, ok bool) {
	const identify = 60
	if len(page) < identify+94 || page[1] != 0x89 {
		return "", "", false
	}
	words := func(from, to int) string {
		var b []byte
		for w := from; w <= to; w++ {
			b = append(b, page[identify+2*w+1], page[identify+2*w])
		}
		return strings.TrimSpace(string(b))
	}
	model, firmware = words(27, 46), words(23, 26)
	return model, firmware, printable(model) && printable(firmware)
}

// printable reports whether s is a text of ASCII, and not empty.
func printable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
