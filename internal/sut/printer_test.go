package sut

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// A system does not wait until its output is shown: what comes too fast is left out,
// and its place says so.
func TestPrinterNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		var shown []string
		p := newPrinter(func(line string) {
			<-block
			shown = append(shown, line)
		})
		p.add("line 0")
		synctest.Wait() // it is being shown
		for i := range queuedLines + 3 {
			p.add(fmt.Sprint("line ", i+1))
		}
		close(block)
		synctest.Wait()
		p.add("later")
		p.close()
		p.close()
		p.add("after the end")
		want := []string{fmt.Sprint("line ", queuedLines), "3 lines not shown", "later"}
		if got := shown[max(0, len(shown)-3):]; len(shown) != queuedLines+3 || !slices.Equal(got, want) {
			t.Errorf("got %d lines, the last %q, want %q", len(shown), got, want)
		}
	})
}

// Its end is not waited for if showing takes too long; the last lines are counted, too.
func TestPrinterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		var shown []string
		p := newPrinter(func(line string) {
			<-block
			shown = append(shown, line)
		})
		p.add("line 0")
		synctest.Wait()
		for range queuedLines + 1 {
			p.add("line")
		}
		p.close()
		if len(shown) != 0 {
			t.Error("it waited for what is not shown")
		}
		close(block)
		<-p.done
		if last := shown[len(shown)-1]; last != "1 line not shown" {
			t.Errorf("got %q at the end", last)
		}
	})
	(*printer)(nil).close()
}
