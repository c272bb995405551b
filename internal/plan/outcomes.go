package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome is what a failure takes of an architecture.
type Outcome struct {
	Failure Failure `json:"failure"`
	Data    string  `json:"rpo"`             // in words
	Seconds float64 `json:"rto_s,omitempty"` // at least; 0 with Unknown: not published
	Wait    string  `json:"rto"`             // in words
	Human   bool    `json:"by_hand,omitempty"`
	Unknown bool    `json:"rto_unknown,omitempty"`
	Rule    string  `json:"rule"`
	lost    data
	// managed: RTO is that of a fail-over manager.
	managed bool
	// behind is how old a backup may be, in seconds.
	behind float64
}

// wantsManager tells whether somebody who is called would be too late, or is not there.
func (r Request) wantsManager(a Architecture) bool {
	automatic := slices.ContainsFunc(losses(), func(x Rule) bool { return x.loss != nil && x.holds(a.Kind) && x.loss.manager != nil })
	late := r.RTO != nil && *r.RTO < r.figure("respond")+r.figure("by-hand")
	return automatic && (late || r.People == 0)
}

// outcomes tells what each failure takes.
func (r Request) outcomes(a Architecture, x Choice) (list []Outcome) {
	for _, f := range Failures() {
		for _, rule := range losses() {
			if rule.loss != nil && rule.loss.of == f && rule.holds(a.Kind) {
				list = append(list, r.outcome(a, rule, x))
			}
		}
	}
	return list
}

func (r Request) outcome(a Architecture, rule Rule, x Choice) Outcome {
	l, name, managed := *rule.loss, rule.Name, false
	switch {
	case a.replicated() && !x.Together && !r.placed(l.of):
		l, name = loss{of: l.of, data: backup, human: true, restore: true}, "not-placed"
	case l.of == Region && x.Together:
		l, name = togetherLoss(a, x.Manager), "region-together"
	case x.Manager && l.manager != nil:
		l, managed = *l.manager, true
	}
	l.unknown = l.unknown || l.at != "" && l.at != x.Provider
	behind := r.figure("backup-every")
	if x.Provider == "RDS" && l.of != Region {
		behind = min(behind, rdsBehind)
	}
	o := Outcome{Failure: rule.loss.of, Human: l.human, Unknown: l.unknown, Rule: name, lost: l.data, managed: managed, behind: behind, Data: dataWords(l.data, behind)}
	if !l.unknown {
		o.Seconds = l.wait
	}
	if l.human {
		o.Seconds += r.figure("respond")
	}
	if l.human && l.wait == 0 {
		o.Seconds += r.figure("by-hand")
	}
	o.Wait = "from " + span(o.Seconds)
	switch {
	case l.unknown:
		o.Wait = "not published"
	case l.restore:
		o.Seconds += r.restoring()
		o.Wait = "from " + span(o.Seconds) + ", to restore a backup at 125 MiB/s"
	case l.human:
		o.Wait = "about " + span(o.Seconds) + ", by hand"
	case o.Seconds == 0:
		o.Wait = "none: it goes on"
	}
	return o
}

// placed tells whether copies lie where a failure does not take them.
func (r Request) placed(f Failure) bool {
	switch f {
	case Zone:
		return r.reaches(Zone)
	case Region:
		return r.regionCopies() > 0
	}
	return true
}

// togetherLoss is that of a region where all copies commit together over three of them: as for a machine.
func togetherLoss(a Architecture, manager bool) loss {
	for _, rule := range losses() {
		if rule.loss != nil && rule.loss.of == Machine && rule.holds(a.Kind) {
			if manager && rule.loss.manager != nil {
				return *rule.loss.manager
			}
			return *rule.loss
		}
	}
	return loss{unknown: true}
}

// restoring returns the seconds until a backup is back, at the 125 MiB/s that a gp3 volume comes with.
func (r Request) restoring() float64 { return float64(r.room()) / (125 << 20) }

// rdsBehind is how far RDS's transaction logs are behind at most, in seconds.
const rdsBehind = 300

func dataWords(d data, behind float64) string {
	switch d {
	case lag:
		return "the replica's lag, not bounded"
	case backup:
		return "what came since the last backup, up to " + span(behind)
	}
	return "0 s"
}

// judge applies every rule that is about an architecture, whether or not anybody asked.
func (r Request) judge(a Architecture, c Choice) (list []Verdict) {
	for _, o := range c.Outcomes {
		list = append(list, r.judgeLoss(o)...)
	}
	for _, x := range conditions() {
		if x.fails == nil || !x.holds(a.Kind) {
			continue
		}
		asked, fails := x.fails(r, a, c.Provider)
		if asked != "" && (fails || r.asks(x.Name, c.Together)) {
			list = append(list, Verdict{x.Name, !fails, asked, clause(x.Says)})
		}
	}
	return list
}

// clause returns what a rule says up to its first colon, semicolon or full stop; --why has the rest.
func clause(text string) string {
	if i := strings.IndexAny(text, ":;."); i > 0 {
		return text[:i]
	}
	return text
}

// asks tells whether the request has to do with a condition at all, so that a met one is worth a line.
func (r Request) asks(condition string, together bool) bool {
	switch condition {
	case "reads-one-server":
		return r.ReadScaling
	case "reads-stale":
		return r.ConsistentReads
	case "one-writer":
		return r.MultiMaster
	case "volume-latency":
		return r.P99 > 0
	case "zones":
		return r.reaches(Zone)
	case "sharding-key", "other-engine":
		return r.ChangeApplication
	case "region-zero":
		return r.stretched()
	case "round-trip":
		return together && r.P99 > 0
	case "region-reads":
		return r.Regions > 1
	}
	return false
}

// judgeLoss holds an outcome against RPO and RTO, where they are asked for that failure.
func (r Request) judgeLoss(o Outcome) (list []Verdict) {
	of := fmt.Sprintf("%s lost: ", o.Failure)
	if !r.reaches(o.Failure) {
		return []Verdict{{o.Rule, true, "", of + "RPO " + o.Data + "; RTO " + o.Wait + " (not asked)"}}
	}
	rpo, rto := 0.0, -1.0
	if r.RPO != nil {
		rpo = *r.RPO
	}
	met := o.lost == none || r.RPO != nil && (o.lost == lag && rpo > 0 || o.lost == backup && rpo >= o.behind)
	if r.RPO == nil { // to survive means that not all is lost: a copy will do, a backup is none
		met = o.lost != backup
	}
	asked := "--survive " + string(r.Survive)
	if r.RPO != nil {
		asked = "--rpo " + span(rpo)
	}
	list = append(list, Verdict{o.Rule, met, asked, of + "RPO " + o.Data})
	if r.RTO != nil {
		rto = *r.RTO
		ok := !o.Unknown && o.Seconds <= rto && (!o.Human || r.People > 0)
		list = append(list, Verdict{o.Rule, ok, "--rto " + span(rto), of + "RTO " + o.Wait})
	} else if o.Human && r.People == 0 {
		list = append(list, Verdict{o.Rule, false, "--people 0", of + "somebody has to act"})
	}
	return list
}
