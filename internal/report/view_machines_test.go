package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/test/testkit/assert"
)

// server describes a machine of a cluster.
func server(name string, free uint64, firmware string) host.Host {
	h := host.Host{Name: name, OS: "linux", Arch: "amd64", Cores: 48, Memory: 64 << 30}
	h.Hardware = host.Hardware{
		MemoryModules: []host.Module{{Bytes: 32 << 30, Type: "DDR4", Speed: 2134, Maker: "Samsung", Part: "M393A4K40CB1-CRC", Locator: "DIMM_A1"}},
		Disks:         []host.Disk{{Name: "sda", Model: "Samsung SSD 850 EVO 1TB", Firmware: firmware, Bytes: 1000204886016}},
		RAID:          []host.Array{{Name: "md0", Level: "raid1", Disks: []string{"sda1", "sdb1"}}},
		FileSystems:   []host.FileSystem{{Mount: "/", Type: "ext4", Bytes: 100 << 30, Free: free << 30}},
	}
	return h
}

// described are descriptions in the form that they have after a report was read.
func described(t *testing.T, hs ...host.Host) (out []any) {
	t.Helper()
	for i := range hs {
		data := assert.Value(json.Marshal(&hs[i]))(t)
		var v any
		assert.OK(t, json.Unmarshal(data, &v))
		out = append(out, v)
	}
	return out
}

// titles are the titles of machines, their names and their free space.
func titles(ms []Machines) (out []string) {
	for _, m := range ms {
		text := m.Title
		for _, r := range m.Rows {
			if strings.HasPrefix(r.Name, "name") || strings.HasPrefix(r.Name, "files") {
				text += "; " + r.Name + ": " + r.Text
			}
		}
		out = append(out, text)
	}
	return out
}

func TestMachines(t *testing.T) {
	a := &Document{Host: host.Host{OS: "linux", Cores: 2}, Hosts: described(t, server("k1", 10, "1"), server("k2", 20, "1"), server("k3", 20, "2"))}
	b := &Document{Host: map[string]any{"os": "linux", "cores": 2.0, "gomaxprocs": 2}, Hosts: described(t, server("k1", 5, "1"), server("", 5, "1"))}
	old := &Document{Host: map[string]any{"cores": "many"}, Hosts: []any{nil, "text"}}
	want := []string{
		"Machine of the generator",
		"Machines of the system; names: k1, k2 (3 alike); files /: ext4, 100 GiB",
		"Machine of the system; name: k3; files /: ext4, 20 GiB free of 100 GiB",
	}
	assert.Same(t, titles(MachinesOf(a, b, b, old)), want)
	got := old.Machines()
	assert.True(t, got == nil, "of a report without a description: got %v", got)
}

// TestMachinesInText checks that the whole report has them, in 80 columns and without
// control characters, and the first page does not.
func TestMachinesInText(t *testing.T) {
	in := openLoop()
	bad := server("k\x1b[31m3", 1, "2")
	bad.Disks[0].Model = "a\x1b]0;model\a" + strings.Repeat(" and a long name", 10)
	in.Host, in.Hosts = server("lab", 1, "EMT02B6Q"), described(t, server("k1", 1, "1"), server("k2", 2, "1"), bad)
	d := build(in)
	var text, brief bytes.Buffer
	assert.OK(t, d.Text(&text, layout.Style{}))
	assert.OK(t, d.Brief(&brief, layout.Style{}))
	assert.Has(t, text.String(),
		"Machine of the generator\n  name          lab\n", "  module        DIMM_A1, 32 GiB, DDR4, 2134 MT/s, Samsung, M393A4K40CB1-CRC\n",
		"  disk sda      932 GiB, Samsung SSD 850 EVO 1TB, firmware EMT02B6Q\n", "  raid md0      raid1, of sda1 and sdb1\n",
		"Machines of the system\n  names         k1, k2 (2 alike)\n")
	assert.True(t, !strings.ContainsAny(text.String(), "\x1b\a"), "a control character of a description is in the text")
	for l := range strings.Lines(text.String()) {
		assert.True(t, layout.Width(strings.TrimSuffix(l, "\n")) <= layout.Columns, "too wide: %q", l)
	}
	assert.True(t, !strings.Contains(brief.String(), "DIMM_A1"), "the first page has the machines")
}
