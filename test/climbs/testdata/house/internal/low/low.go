package low

import "fmt"

type Target interface{ Go() }

func Each(list []string, do func(string)) {
	for _, s := range list {
		do(s)
	}
}

func Drive(t Target) { t.Go() }

func Empty(s string) bool { return s == "" }

func Said(err error) error { return fmt.Errorf("low: %s", err.Error()) }
