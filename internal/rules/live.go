package rules

import "david/internal/mycnf"

// LivePlan lists what can be changed on a running server, in the order in which it is, what only a restart
// changes, and what is for somebody else to change.
type LivePlan struct {
	Steps  []LiveStep   `json:"steps"`
	Advice []LiveChange `json:"advice"` // takes a restart
	Decide []LiveChange `json:"decide"` // what david changes on no running server: durability, limits of users
	Notes  []string     `json:"notes"`  // what was left out, and why
}

// LiveStep groups what is changed together, and watched together.
type LiveStep struct {
	Name    string       `json:"name"`
	Title   string       `json:"title"`
	Changes []LiveChange `json:"changes"` // in the order in which they are made
}

// LiveChange pairs a setting with the value it replaces, as the server reports it.
type LiveChange struct {
	mycnf.Setting
	Before string `json:"before"`
}

// SizeOf returns a size as text in bytes; 0 where it is none.
func SizeOf(s string) int64 {
	n, err := mycnf.ParseSize(s)
	if err != nil {
		return 0
	}
	return n
}
