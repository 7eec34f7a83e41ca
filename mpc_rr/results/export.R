# Reads a folder that `mpc-rr export` wrote, with base R alone:  Rscript read.R [FOLDER]
# Where answers were randomized by known matrices, their reports are corrected here once more and
# compared with what was published; corrected.csv has the outcome. In a session of your own:
#   source("read.R"); study <- read_study("FOLDER"); study$tables; study$codebook
#   corrected(study, c("sex", "smokes"))      # any table of reported attributes

read_sheet <- function(folder, name) {
  place <- file.path(folder, name)
  if (!file.exists(place)) return(NULL)
  read.csv(place, colClasses = "character", check.names = FALSE, na.strings = character(0),
           fileEncoding = "UTF-8", encoding = "UTF-8")
}

read_study <- function(folder) {
  study <- list(
    codebook = read_sheet(folder, "codebook.csv"), tables = read_sheet(folder, "tables.csv"),
    reports = read_sheet(folder, "reports.csv"), randomization = read_sheet(folder, "randomization.csv"),
    clusters = read_sheet(folder, "clusters.csv"), folder = folder
  )
  for (name in c("value", "standard_error", "low", "high", "unbiased", "reported", "n")) {
    study$tables[[name]] <- suppressWarnings(as.numeric(study$tables[[name]]))
  }
  study
}

categories <- function(study, attribute) {
  study$codebook$category[study$codebook$attribute == attribute]
}

# P[u, v]: the probability that a true u is reported as v.
kept_or_uniform <- function(size, keep) keep * diag(size) + (1 - keep) / size

# All combinations of several factors, the last of which runs fastest: each kept or uniform, or by
# the matrix in a file.
combined <- function(study, sizes, keeps, files) {
  matrix <- kept_or_uniform(1, 1)
  for (k in seq_along(sizes)) {
    if (is.na(keeps[k])) {
      if (!nzchar(files[k])) stop("the matrix of these attributes together is not in this folder")
      factor <- data.matrix(read.csv(file.path(study$folder, files[k]), check.names = FALSE)[, -1])
    } else {
      factor <- kept_or_uniform(sizes[k], keeps[k])
    }
    matrix <- kronecker(matrix, unname(factor))
  }
  matrix
}

# The nearest distribution.
nearest <- function(shares) {
  sorted <- sort(shares, decreasing = TRUE)
  excess <- (cumsum(sorted) - 1) / seq_along(sorted)
  pmax(shares - excess[max(which(sorted > excess))], 0)
}

# Unbiased shares and their standard errors, from how often each combination was reported.
undo <- function(counts, matrix) {
  n <- sum(counts)
  reported <- counts / n
  inverse <- solve(t(matrix))
  unbiased <- as.vector(inverse %*% reported)
  centre <- unbiased
  if (min(unbiased) < 0) {
    centre <- nearest(unbiased)
    reported <- as.vector(t(matrix) %*% centre)
  }
  variance <- as.vector(inverse^2 %*% reported) - centre^2
  data.frame(unbiased = unbiased, standard_error = sqrt(pmax(variance, 0) / max(n - 1, 1)))
}

# How often each combination of some attributes was reported, the last attribute fastest.
counted <- function(study, attributes) {
  cell <- rep(0, nrow(study$reports))
  size <- 1
  for (attribute in attributes) {
    known <- categories(study, attribute)
    cell <- cell * length(known) + match(study$reports[[attribute]], known) - 1
    size <- size * length(known)
  }
  tabulate(cell + 1, nbins = size)
}

# The table of some attributes, which must be in different clusters, or together in one.
corrected <- function(study, attributes) {
  if (is.null(study$clusters) || is.null(study$reports)) {
    stop("this study has no reports that are corrected by a matrix")
  }
  where <- match(attributes, study$clusters$attribute)
  if (anyNA(where)) stop("no such attribute: ", paste(attributes[is.na(where)], collapse = ", "))
  cluster <- study$clusters$cluster[where]
  if (any(diff(match(cluster, unique(cluster))) < 0)) {
    stop("attributes of one cluster must stand beside each other")
  }
  sizes <- sapply(attributes, function(a) length(categories(study, a)))
  together <- tapply(sizes, factor(cluster, levels = unique(cluster)), prod)
  first <- match(unique(cluster), study$clusters$cluster)
  keeps <- suppressWarnings(as.numeric(study$clusters$keep[first]))
  whole <- as.vector(table(study$clusters$cluster)[unique(cluster)])
  asked <- as.vector(table(factor(cluster, levels = unique(cluster))))
  files <- ifelse(whole == asked, study$clusters$file[first], "")
  cells <- rev(expand.grid(rev(lapply(attributes, function(a) categories(study, a))),
                           stringsAsFactors = FALSE))
  names(cells) <- attributes
  cbind(cells, undo(counted(study, attributes), combined(study, as.vector(together), keeps, files)))
}

main <- function(folder) {
  study <- read_study(folder)
  cat(length(unique(study$tables$table)), "tables,", length(unique(study$codebook$attribute)),
      "attributes\n")
  if (is.null(study$randomization)) {
    cat("Nothing is to be corrected: values are as they were published.\n")
    return(invisible(study))
  }
  found <- list()
  worst <- 0
  for (table in unique(study$randomization$table)) {
    factors <- study$randomization[study$randomization$table == table, ]
    rows <- study$tables[study$tables$table == table, ]
    axes <- grep("^attribute_", names(rows))
    attributes <- unlist(rows[1, axes])
    attributes <- attributes[nzchar(attributes)]
    counts <- if (is.null(study$reports)) rows$reported else counted(study, attributes)
    keeps <- suppressWarnings(as.numeric(factors$keep))
    own <- undo(counts, combined(study, as.numeric(factors$size), keeps, factors$file))
    worst <- max(worst, abs(own$unbiased - rows$unbiased), abs(own$standard_error - rows$standard_error))
    names <- grep("^(table|attribute_|category_)", names(rows))
    found[[table]] <- cbind(rows[, names], own)
  }
  write.csv(do.call(rbind, found), file.path(folder, "corrected.csv"), row.names = FALSE,
            fileEncoding = "UTF-8")
  cat("Largest difference from the published shares and standard errors:", format(worst), "\n")
  if (worst > 1e-8) quit(status = 1)
  invisible(study)
}

if (sys.nframe() == 0) {
  arguments <- commandArgs(trailingOnly = TRUE)
  main(if (length(arguments)) arguments[1] else ".")
}
