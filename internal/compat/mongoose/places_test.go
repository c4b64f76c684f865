package mongoose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A list has places if they were written with it, and it did not change since.
func TestPlaces(t *testing.T) {
	write := func(t *testing.T, withOffsets bool) string {
		t.Helper()
		list := filepath.Join(t.TempDir(), "items.csv")
		w, err := newListWriter(list, "t")
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(5) {
			offset := 10 + i
			if !withOffsets && i == 3 {
				offset = -1
			}
			if err := w.add(fmt.Appendf(nil, "t/%d,%d,10,0/0\n", i, i), int32(i/2), offset); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		return list
	}
	check := func(t *testing.T, list, topic string) error {
		t.Helper()
		items, err := readItems(list)
		if err != nil {
			t.Fatal(err)
		}
		return (&step{topic: topic, items: items}).checkPlaces(list)
	}
	list := write(t, true)
	if err := check(t, list, "t"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(placesOf(list)); err != nil || !strings.Contains(string(text), "\n0,10,2\n1,12,2\n2,14\n# of the list with 5 lines, crc32c ") {
		t.Errorf("the places are %q (%v)", text, err)
	}
	if err := check(t, list, "other"); err != errOther { //nolint:errorlint // it is not wrapped
		t.Errorf("another topic: %v", err)
	}
	if _, err := os.Stat(placesOf(write(t, false))); !os.IsNotExist(err) {
		t.Errorf("a record has no offset: %v", err)
	}
	for name, change := range map[string]func(text string) string{
		"a line less":  func(text string) string { return text[:strings.LastIndex(text[:len(text)-1], "\n")+1] },
		"another size": func(text string) string { return strings.Replace(text, ",10,", ",11,", 1) },
	} {
		list := write(t, true)
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(list, []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := check(t, list, "t"); err != errOther { //nolint:errorlint // it is not wrapped
			t.Errorf("%s: %v", name, err)
		}
	}
	list = write(t, true)
	text, _ := os.ReadFile(placesOf(list))
	if err := os.WriteFile(placesOf(list), []byte(strings.Replace(string(text), "1,12,2", "1,12,x", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(t, list, "t"); err == nil || !strings.Contains(err.Error(), `items.csv.places:4: "x" is not a number of records`) {
		t.Errorf("a wrong line: %v", err)
	}
}

// A list with places is read by them, at a rate if one is given.
func TestReadsByPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "items.csv")
	w, err := newListWriter(list, "t")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.add([]byte("t/a,1,10,0/0\n"), 0, 3); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	v, err := parse([]string{"--read", "--item-input-file=" + list, "--load-op-limit-rate=7", "--storage-driver-limit-concurrency=3", "--load-op-recycle"}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStep(v, false, "", began, func(f string, args ...any) { t.Errorf("warning: "+f, args...) })
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range s.workload(false).Entries {
		got[e.Name] = strings.Join(e.Values, " ")
	}
	for name, want := range map[string]string{"op": "read", "items-in": placesOf(list), "rate": "7/s", "max-in-flight": "3", "recycle": "true", "failures": "100000"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
