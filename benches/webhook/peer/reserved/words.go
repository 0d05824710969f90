// Package reserved has the words that engines reserve.
package reserved

import "strings"

// Postgres has the words that PostgreSQL reserves: https://www.postgresql.org/docs/17/sql-keywords-appendix.html
var Postgres = words(`
	all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
	column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
	current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
	from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
	localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
	returning right select session_user similar some symmetric system_user table tablesample then to trailing true
	union unique user using variadic verbose when where window with`)

// MySQL has the words that all versions of MySQL and MariaDB reserve.
var MySQL = words(mysql)

// MySQL84 has the words that MySQL 8.4 reserves: https://dev.mysql.com/doc/refman/8.4/en/keywords.html
var MySQL84 = words(mysql + `
	cube cume_dist dense_rank empty except first_value function grouping groups intersect json_table lag last_value
	lateral lead manual nth_value ntile of over parallel percent_rank qualify rank recursive row row_number rows system
	tablesample window`)

func words(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(text) {
		all[word] = true
	}
	return all
}

const mysql = `
	accessible add all alter analyze and as asc asensitive before between bigint binary blob both by call cascade case
	change char character check collate column condition constraint continue convert create cross current_date
	current_time current_timestamp current_user cursor database databases day_hour day_microsecond day_minute
	day_second dec decimal declare default delayed delete desc describe deterministic distinct distinctrow div double
	drop dual each else elseif enclosed escaped exists exit explain false fetch float float4 float8 for force foreign
	from fulltext generated get grant group having high_priority hour_microsecond hour_minute hour_second if ignore in
	index infile inner inout insensitive insert int int1 int2 int3 int4 int8 integer interval into io_after_gtids
	io_before_gtids is iterate join key keys kill leading leave left like limit linear lines load localtime
	localtimestamp lock long longblob longtext loop low_priority master_bind match maxvalue mediumblob mediumint
	mediumtext middleint minute_microsecond minute_second mod modifies natural no_write_to_binlog not null numeric on
	optimize optimizer_costs option optionally or order out outer outfile partition precision primary procedure purge
	range read read_write reads real references regexp release rename repeat replace require resignal restrict return
	revoke right rlike schema schemas second_microsecond select sensitive separator set show signal smallint spatial
	specific sql sql_big_result sql_calc_found_rows sql_small_result sqlexception sqlstate sqlwarning ssl starting
	stored straight_join table terminated then tinyblob tinyint tinytext to trailing trigger true undo union unique
	unlock unsigned update usage use using utc_date utc_time utc_timestamp values varbinary varchar varcharacter
	varying virtual when where while with write xor year_month zerofill`
