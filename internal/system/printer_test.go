package system

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"carronade/test/testkit/assert"
)

// blockedPrinter is a printer that shows a first line, and nothing else until release is called.
func blockedPrinter() (p *printer, shown *[]string, release func()) {
	block := make(chan struct{})
	shown = new([]string)
	p = newPrinter(func(line string) {
		<-block
		*shown = append(*shown, line)
	})
	p.add("line 0")
	synctest.Wait() // it is being shown
	return p, shown, func() { close(block) }
}

// A system does not wait until its output is shown: what comes too fast is left out, and its place says so.
func TestPrinterNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shown, release := blockedPrinter()
		for i := range queuedLines + 3 {
			p.add(fmt.Sprint("line ", i+1))
		}
		release()
		synctest.Wait()
		p.add("later")
		p.close()
		p.close()
		p.add("after the end")
		want := []string{fmt.Sprint("line ", queuedLines), "3 lines not shown", "later"}
		if got := (*shown)[max(0, len(*shown)-3):]; len(*shown) != queuedLines+3 || !slices.Equal(got, want) {
			t.Errorf("got %d lines, the last %q, want %q", len(*shown), got, want)
		}
	})
}

// Its end is not waited for if showing takes too long; the last lines are counted, too.
func TestPrinterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shown, release := blockedPrinter()
		for range queuedLines + 1 {
			p.add("line")
		}
		p.close()
		assert.Equal(t, len(*shown), 0, "lines shown")
		release()
		<-p.done
		assert.Equal(t, (*shown)[len(*shown)-1], "1 line not shown", "at the end")
	})
	(*printer)(nil).close()
}
