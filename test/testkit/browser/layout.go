package browser

import (
	_ "embed"
	"fmt"
)

//go:embed layout.js
var layoutScript string

// Fits fails the test for each text of the page that is cut, overlaps another one of a chart, or is a number
// in two lines; for anything wider than the screen; and, on a screen 800 high, if the first chart begins below it.
func (tab *Tab) Fits() {
	tab.t.Helper()
	found := Eval[struct {
		Problems []string
		Checked  int
	}](tab, layoutScript)
	for _, p := range found.Problems {
		tab.t.Error(p)
	}
	if found.Checked == 0 {
		tab.t.Error("no text of a chart was checked")
	}
}

// Shown waits until all charts have the width of their places.
func (tab *Tab) Shown(v View) {
	tab.t.Helper()
	tab.SetView(v)
	tab.Until(fmt.Sprintf(`innerWidth === %d && [...document.querySelectorAll(".plot")].every((p) => p.querySelector("canvas") && Math.abs(p.clientWidth - p.querySelector("canvas").clientWidth) < 2)`, v.Width))
}
