package result

import (
	"encoding/json"
	"testing"
)

// TestWarningIsReadBack as it is written, and as the line that a store may have in its place.
func TestWarningIsReadBack(t *testing.T) {
	borrowed := Warning{BorrowedSpeed, "the checkpoint age grew: 300 MiB"}
	b, err := json.Marshal(borrowed)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Warning{
		string(b): borrowed,
		`"borrowed speed: the checkpoint age grew: 300 MiB"`: borrowed,
		`"no kind at all"`: {Text: "no kind at all"},
	} {
		var got Warning
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if got := borrowed.String(); got != "dirty pages still to be flushed: the checkpoint age grew: 300 MiB" {
		t.Errorf("%q", got)
	}
	if trial := (Trial{Warnings: []Warning{borrowed}}); !trial.Warned(BorrowedSpeed) || trial.Warned(Disturbed) {
		t.Errorf("%+v", trial)
	}
}
