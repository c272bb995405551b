package result

import (
	"errors"
	"testing"
)

// TestWatch has what is stored told, whole, and only then.
func TestWatch(t *testing.T) {
	s := newStore(t)
	var told []any
	s.Watch(func(document any) error {
		told = append(told, document)
		return nil
	})
	trial := sampleTrial("a")
	if err := errors.Join(s.PutArm(Arm{Name: "pod"}), s.AppendTrial(trial), s.Finish(Finish{Best: "x"})); err != nil {
		t.Fatal(err)
	}
	if len(told) != 3 {
		t.Fatalf("%d documents were told", len(told))
	}
	if a, ok := told[0].(Arm); !ok || a.Name != "pod" {
		t.Errorf("%+v", told[0])
	}
	if got, ok := told[1].(Trial); !ok || got.ID != "a" || len(got.Points) != len(trial.Points) || len(got.Points) == 0 {
		t.Errorf("%+v", told[1])
	}
	if f, ok := told[2].(Finish); !ok || f.Best != "x" {
		t.Errorf("%+v", told[2])
	}
	if err := s.AppendTrial(Trial{ID: "../x"}); err == nil || len(told) != 3 {
		t.Error("what was not stored was told")
	}
	s.Watch(func(any) error { return errors.New("no room") })
	if err := s.PutArm(Arm{Name: "b"}); err == nil {
		t.Error("an error of who is told is lost")
	}
}

func TestAmend(t *testing.T) {
	s := newStore(t)
	e := s.Experiment()
	e.Server.Version, e.Pod = "9.7.4", &PodFacts{Name: "mysql-0", Clients: []string{"n1"}}
	if err := s.Amend(e); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.Dir())
	if err != nil || again.Experiment().Server.Version != "9.7.4" || again.Experiment().Pod.Clients[0] != "n1" || s.Experiment().Server.Version != "9.7.4" {
		t.Errorf("%+v, %v", again.Experiment(), err)
	}
}
