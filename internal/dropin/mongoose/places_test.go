package mongoose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// A list has places if they were written with it, and it did not change since.
func TestPlaces(t *testing.T) {
	write := func(t *testing.T, withOffsets bool) string {
		t.Helper()
		list := filepath.Join(t.TempDir(), "items.csv")
		w := assert.Value(newListWriter(list, "t"))(t)
		for i := range int64(5) {
			offset := 10 + i
			if !withOffsets && i == 3 {
				offset = -1
			}
			assert.OK(t, w.add(fmt.Appendf(nil, "t/%d,%d,10,0/0\n", i, i), int32(i/2), offset))
		}
		assert.OK(t, w.close())
		return list
	}
	check := func(t *testing.T, list, topic string) error {
		t.Helper()
		items := assert.Value(readItems(list))(t)
		return (&step{topic: topic, items: items}).checkPlaces(list)
	}
	list := write(t, true)
	assert.OK(t, check(t, list, "t"))
	if text, err := os.ReadFile(placesOf(list)); err != nil || !strings.Contains(string(text), "\n0,10,2\n1,12,2\n2,14\n# of the list with 5 lines, crc32c ") {
		t.Errorf("the places are %q (%v)", text, err)
	}
	assert.Equal(t, check(t, list, "other"), errOther, "another topic")
	_, err := os.Stat(placesOf(write(t, false)))
	assert.True(t, os.IsNotExist(err), "a record has no offset: %v", err)
	for name, change := range map[string]func(text string) string{
		"a line less":  func(text string) string { return text[:strings.LastIndex(text[:len(text)-1], "\n")+1] },
		"another size": func(text string) string { return strings.Replace(text, ",10,", ",11,", 1) },
	} {
		list := write(t, true)
		assert.OK(t, os.WriteFile(list, []byte(change(string(assert.Value(os.ReadFile(list))(t)))), 0o600))
		assert.Equal(t, check(t, list, "t"), errOther, "%s", name)
	}
	list = write(t, true)
	text, _ := os.ReadFile(placesOf(list))
	assert.OK(t, os.WriteFile(placesOf(list), []byte(strings.Replace(string(text), "1,12,2", "1,12,x", 1)), 0o600))
	assert.ErrorHas(t, check(t, list, "t"), `items.csv.places:4: "x" is not a number of records`, "a wrong line")
}

// A list with places is read by them, at a rate if one is given.
func TestReadsByPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := assert.Value(os.Getwd())(t)
	list := filepath.Join(dir, "items.csv")
	w := assert.Value(newListWriter(list, "t"))(t)
	assert.OK(t, w.add([]byte("t/a,1,10,0/0\n"), 0, 3))
	assert.OK(t, w.close())
	v, err := parse([]string{"--read", "--item-input-file=" + list, "--load-op-limit-rate=7", "--storage-driver-limit-concurrency=3", "--load-op-recycle"}, t.Logf)
	assert.OK(t, err)
	s := assert.Value(newStep(v, false, "", began, func(f string, args ...any) { t.Errorf("warning: "+f, args...) }))(t)
	got := map[string]string{}
	for _, e := range s.workload(false).Entries {
		got[e.Name] = strings.Join(e.Values, " ")
	}
	for name, want := range map[string]string{"op": "read", "items-in": placesOf(list), "rate": "7/s", "max-in-flight": "3", "recycle": "true", "failures": "100000"} {
		assert.Equal(t, got[name], want, "%s", name)
	}
}
