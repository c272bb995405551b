package failover

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestWhom fences the one client that has an image, and of several none that nobody has named.
func TestWhom(t *testing.T) {
	a, b, c := "10.0.0.5:0/1", "10.0.0.5:0/2", "10.0.0.6:0/3"
	for _, x := range []struct {
		clients, asked []string
		want           string // what is fenced; or what the refusal says
	}{
		{[]string{a}, nil, "[10.0.0.5:0/1]"},
		{[]string{a, b}, nil, "only one can be the old side"},
		{[]string{a, b}, []string{a, b}, "[10.0.0.5:0/1 10.0.0.5:0/2]"},
		{[]string{a, b}, []string{"10.0.0.5"}, "[10.0.0.5]"},
		{[]string{a, c}, []string{"10.0.0.5"}, "10.0.0.6:0/3 have the image open"},
		{[]string{a, b, c}, []string{a}, "10.0.0.5:0/2 and 10.0.0.6:0/3 have"},
		{nil, nil, "nobody has the image open"},
		{nil, []string{"10.0.0.5"}, "[10.0.0.5]"},
		{[]string{a}, []string{"--force"}, "is no address"},
		{[]string{a}, []string{"127.0.0.1"}, "is this machine"},
	} {
		got, err := whom(x.clients, x.asked)
		text := fmt.Sprint(got)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, x.want) || err != nil && !errors.Is(err, ErrInput) {
			t.Errorf("%v, asked for %v: %s, want %s", x.clients, x.asked, text, x.want)
		}
	}
}
