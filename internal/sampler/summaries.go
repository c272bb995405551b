package sampler

import (
	"cmp"
	"slices"
	"strconv"

	"david/internal/result"
)

// waitsQuery asks for the instruments that have counted anything.
const waitsQuery = "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name WHERE COUNT_STAR > 0"

// statementsQuery asks for the statements of the load's schema.
func statementsQuery(schema string) string {
	return "SELECT DIGEST, COUNT_STAR, SUM_TIMER_WAIT, SUM_LOCK_TIME, SUM_ROWS_EXAMINED, LEFT(DIGEST_TEXT, 512)" +
		" FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = " + literal(schema)
}

// picosecond is the unit of performance_schema's timers, in seconds.
const picosecond = 1e-12

// summaryRow describes a line of a summary: its counters, and what else it has.
type summaryRow struct {
	key    string
	values []float64
	text   string
}

// rowsOf reads an answer whose first column is a key and the next ones are so many counters. Rows of another
// form are left out.
func rowsOf(answer [][]string, counters int) map[string]summaryRow {
	all := make(map[string]summaryRow, len(answer))
	for _, columns := range answer {
		if len(columns) <= counters {
			continue
		}
		r := summaryRow{key: columns[0], text: columns[len(columns)-1]}
		for _, text := range columns[1 : counters+1] {
			v, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				break
			}
			r.values = append(r.values, float64(v))
		}
		if len(r.values) == counters {
			all[r.key] = r
		}
	}
	return all
}

// growth tells by how much the summaries' counters grew, of which the first counts events; rows without an
// event are left out. A summary that was emptied in between counts from there.
func growth(before, after map[string]summaryRow) (list []summaryRow) {
	for key, now := range after {
		then, had := before[key]
		grown := summaryRow{key: key, text: now.text, values: slices.Clone(now.values)}
		for i := range grown.values {
			if had && now.values[0] >= then.values[0] {
				grown.values[i] = max(0, now.values[i]-then.values[i])
			}
		}
		if grown.values[0] > 0 {
			list = append(list, grown)
		}
	}
	slices.SortFunc(list, func(a, b summaryRow) int { // most seconds first
		return cmp.Or(cmp.Compare(b.values[1], a.values[1]), cmp.Compare(a.key, b.key))
	})
	return list
}

func waits(before, after map[string]summaryRow) (list []result.Wait) {
	for _, r := range growth(before, after) {
		list = append(list, result.Wait{Name: r.key, Count: int64(r.values[0]), Seconds: r.values[1] * picosecond})
	}
	return list
}

// statementsMax says how many statements are kept.
const statementsMax = 10

func statements(before, after map[string]summaryRow) (list []result.Statement) {
	all := growth(before, after)
	for _, r := range all[:min(len(all), statementsMax)] {
		list = append(list, result.Statement{Text: r.text, Count: int64(r.values[0]), Seconds: r.values[1] * picosecond,
			Lock: r.values[2] * picosecond, Examined: int64(r.values[3])})
	}
	return list
}
