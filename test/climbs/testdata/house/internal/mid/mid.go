package mid

import (
	"errors"
	"slices"

	"house/internal/low"
)

type target struct{}

func (target) Go() {}

type mine struct{ error }

func (m mine) Error() string { return "mine" }

// Work climbs once by itself, and low climbs twice into it: a callback, and an interface. What is handed to
// the library is called by whoever hands it, and what an error says does not count.
func Work(show func(string)) error {
	show("work")
	low.Each([]string{"x"}, func(s string) {})
	low.Drive(target{})
	if slices.ContainsFunc([]string{"y"}, func(s string) bool { return low.Empty(s) }) {
		return nil
	}
	return low.Said(mine{errors.New("x")})
}

func Unused(show func(string)) { show("unused") }
